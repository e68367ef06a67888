/**
 * The keys that AWS's own tools would use here, in their order: environment, a web identity (EKS), the shared file,
 * a container's endpoint (ECS, EKS pod identity), the instance's metadata (EC2, IMDSv2).
 */
import { readFileSync } from 'node:fs'
import type { AwsKeys } from '../../auth/aws-signature.js'
import { askJson, askText, type Fields, part, readToken, word } from './read-answer.js'

export type Environment = Readonly<Record<string, string | undefined>>

export interface FoundKeys {
  readonly keys: AwsKeys
  /** Undefined: they do not expire. */
  readonly expiresAtMs?: number
}

/** @throws Error that says what was tried last */
export async function findAwsKeys(env: Environment, region: string): Promise<FoundKeys> {
  const accessKeyId = env['AWS_ACCESS_KEY_ID']
  const secretAccessKey = env['AWS_SECRET_ACCESS_KEY']
  if (accessKeyId && secretAccessKey) {
    const sessionToken = env['AWS_SESSION_TOKEN']
    return { keys: { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) } }
  }
  if (env['AWS_WEB_IDENTITY_TOKEN_FILE'] && env['AWS_ROLE_ARN'])
    return await webIdentity(env, region)
  const shared = sharedFile(env)
  if (shared) return { keys: shared }
  const full = env['AWS_CONTAINER_CREDENTIALS_FULL_URI']
  const relative = env['AWS_CONTAINER_CREDENTIALS_RELATIVE_URI']
  if (full || relative) return await container(full ?? `http://169.254.170.2${relative}`, env)
  if (env['AWS_EC2_METADATA_DISABLED'] === 'true') throw new Error('there are no AWS keys')
  return await instance(env)
}

function keysOf(what: string, fields: Fields, tokenName: string): FoundKeys {
  const expiresAtMs = Date.parse(String(fields['Expiration'] ?? ''))
  // STS writes seconds since 1970
  const seconds = Number(fields['Expiration'])
  const at = Number.isFinite(seconds) ? seconds * 1000 : expiresAtMs
  return {
    keys: {
      accessKeyId: word(what, fields, 'AccessKeyId'),
      secretAccessKey: word(what, fields, 'SecretAccessKey'),
      sessionToken: word(what, fields, tokenName),
    },
    ...(Number.isFinite(at) ? { expiresAtMs: at } : {}),
  }
}

async function webIdentity(env: Environment, region: string): Promise<FoundKeys> {
  const what = 'AssumeRoleWithWebIdentity'
  const base = env['AWS_ENDPOINT_URL_STS'] ?? `https://sts.${region}.amazonaws.com`
  const answer = await askJson(what, {
    method: 'POST',
    url: `${base.replace(/\/+$/, '')}/`,
    headers: {
      accept: 'application/json',
      'content-type': 'application/x-www-form-urlencoded',
    },
    body: new URLSearchParams({
      Action: what,
      Version: '2011-06-15',
      RoleArn: env['AWS_ROLE_ARN'] ?? '',
      RoleSessionName: env['AWS_ROLE_SESSION_NAME'] ?? 'pgshard',
      WebIdentityToken: readToken('the web identity', env['AWS_WEB_IDENTITY_TOKEN_FILE'] ?? ''),
    }).toString(),
  })
  const response = part(what, answer, 'AssumeRoleWithWebIdentityResponse')
  const result = part(what, response, 'AssumeRoleWithWebIdentityResult')
  return keysOf(what, part(what, result, 'Credentials'), 'SessionToken')
}

/** `[name]` and lines `key = value`. */
function sharedFile(env: Environment): AwsKeys | undefined {
  const path = env['AWS_SHARED_CREDENTIALS_FILE'] ?? `${env['HOME'] ?? ''}/.aws/credentials`
  const wanted = env['AWS_PROFILE'] ?? 'default'
  let text: string
  try {
    text = readFileSync(path, 'utf8')
  } catch {
    return undefined
  }
  const values: Record<string, string> = {}
  let section = ''
  for (const line of text.split(/\r?\n/)) {
    const head = /^\s*\[(.+)\]\s*$/.exec(line)
    if (head) section = (head[1] as string).trim()
    const pair = /^\s*(\w+)\s*=\s*(.*?)\s*$/.exec(line)
    if (pair && section === wanted) values[pair[1] as string] = pair[2] as string
  }
  const accessKeyId = values['aws_access_key_id']
  const secretAccessKey = values['aws_secret_access_key']
  const sessionToken = values['aws_session_token']
  if (!accessKeyId || !secretAccessKey) return undefined
  return { accessKeyId, secretAccessKey, ...(sessionToken ? { sessionToken } : {}) }
}

async function container(url: string, env: Environment): Promise<FoundKeys> {
  const what = "the container's endpoint"
  const path = env['AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE']
  const token = path
    ? readToken('the token of the container', path)
    : env['AWS_CONTAINER_AUTHORIZATION_TOKEN']
  const headers = token ? { authorization: token } : {}
  return keysOf(what, await askJson(what, { url, headers }), 'Token')
}

async function instance(env: Environment): Promise<FoundKeys> {
  const what = "the instance's metadata"
  const base = (env['AWS_EC2_METADATA_SERVICE_ENDPOINT'] ?? 'http://169.254.169.254').replace(
    /\/+$/,
    '',
  )
  const token = await askText(what, {
    method: 'PUT',
    url: `${base}/latest/api/token`,
    headers: { 'x-aws-ec2-metadata-token-ttl-seconds': '300' },
  })
  const headers = { 'x-aws-ec2-metadata-token': token }
  const list = `${base}/latest/meta-data/iam/security-credentials/`
  const role = (await askText(what, { url: list, headers })).split('\n')[0]?.trim()
  if (!role) throw new Error('the instance has no role')
  return keysOf(what, await askJson(what, { url: `${list}${role}`, headers }), 'Token')
}
