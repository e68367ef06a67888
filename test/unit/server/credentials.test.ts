/** Credentials from Vault, Azure and AWS against a scripted HTTP server; what fails says what, and never the secret. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { findAwsKeys } from '../../../src/server/credentials/aws-keys.js'
import { azureProvider } from '../../../src/server/credentials/azure-identity.js'
import {
  type CredentialProvider,
  keepCredentials,
} from '../../../src/server/credentials/kept-credentials.js'
import { rdsProvider, regionOf } from '../../../src/server/credentials/rds-iam.js'
import { type VaultPlace, vaultProvider } from '../../../src/server/credentials/vault.js'
import { FakeClock } from '../../support/fake-clock.js'

interface Heard {
  readonly method: string
  readonly url: string
  readonly headers: IncomingMessage['headers']
  readonly body: string
}

let server: Server
let base: string
let heard: Heard[] = []
let script: (request: Heard) => { status?: number; body: unknown } | undefined
const directory = mkdtempSync(join(tmpdir(), 'credentials-'))
const file = (name: string, text: string): string => {
  const path = join(directory, name)
  writeFileSync(path, text)
  return path
}

beforeAll(async () => {
  server = createServer((request, response) => {
    let body = ''
    request.on('data', (chunk) => {
      body += chunk
    })
    request.on('end', () => {
      const { method = '', url = '', headers } = request
      heard.push({ method, url, headers, body })
      const answer = script(heard.at(-1) as Heard)
      if (!answer) {
        request.socket.destroy()
        return
      }
      response.statusCode = answer.status ?? 200
      response.end(typeof answer.body === 'string' ? answer.body : JSON.stringify(answer.body))
    })
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  base = `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`
})
afterAll(async () => {
  server.closeAllConnections()
  await new Promise((resolve) => server.close(resolve))
  rmSync(directory, { recursive: true })
})
beforeEach(() => {
  heard = []
})

const failure = async (provider: CredentialProvider): Promise<{ code?: string; message: string }> =>
  keepCredentials(provider, systemClock)
    .get()
    .then(
      () => ({ message: 'it worked' }),
      (error: { code: string; message: string }) => error,
    )

describe('Vault', () => {
  const approle = (): VaultPlace => ({
    url: `${base}/`,
    authMethod: 'approle',
    approleRoleId: 'role-1',
    approleSecretIdFile: file('secret-id', 'secret-of-role\n'),
    namespace: 'team',
  })
  const login = { kind: 'vault_dynamic', path: 'database/creds/app', refreshPercent: 80 } as const

  test('logs in by approle and gets a login with its life', async () => {
    script = ({ url }) =>
      url.endsWith('/login')
        ? { body: { auth: { client_token: 'token-of-vault' } } }
        : { body: { lease_duration: 120, data: { username: 'v-app-1', password: 'made up' } } }
    const lease = await vaultProvider(approle(), login, {}).fetch()
    expect(lease).toEqual({ user: 'v-app-1', password: 'made up', lifeMs: 120_000 })
    expect(heard.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'POST /v1/auth/approle/login',
      'GET /v1/database/creds/app',
    ])
    expect(JSON.parse(heard[0]!.body)).toEqual({ role_id: 'role-1', secret_id: 'secret-of-role' })
    expect(heard[1]!.headers['x-vault-token']).toBe('token-of-vault')
    expect(heard[1]!.headers['x-vault-namespace']).toBe('team')
  })

  test('logs in by Kubernetes, and a static login holds for its ttl', async () => {
    script = ({ url }) =>
      url.endsWith('/login')
        ? { body: { auth: { client_token: 't' } } }
        : { body: { lease_duration: 0, data: { username: 'app', password: 'p', ttl: 33 } } }
    const place: VaultPlace = {
      url: base,
      authMethod: 'kubernetes',
      authMount: 'k8s',
      kubernetesRole: 'pgshard',
      kubernetesJwtPath: file('jwt', 'pod.jwt\n'),
    }
    const path = 'database/static-creds/app'
    const lease = await vaultProvider(
      place,
      { kind: 'vault_static', path, refreshPercent: 50 },
      {},
    ).fetch()
    expect(lease).toEqual({ user: 'app', password: 'p', lifeMs: 33_000 })
    expect(heard[0]!.url).toBe('/v1/auth/k8s/login')
    expect(JSON.parse(heard[0]!.body)).toEqual({ role: 'pgshard', jwt: 'pod.jwt' })
  })

  test('what fails is named, without the secret', async () => {
    script = () => ({ status: 403, body: { errors: ['secret-of-role is wrong'] } })
    const refused = await failure(vaultProvider(approle(), login, {}))
    expect(refused).toMatchObject({ code: 'SERVER_CREDENTIALS_FAILED' })
    expect(refused.message).toBe(
      `no credentials from Vault ${base}/database/creds/app: the login at auth/approle was answered with status 403`,
    )
    script = () => ({ body: 'no JSON but secret-of-role' })
    expect((await failure(vaultProvider(approle(), login, {}))).message).toMatch(
      /was answered with something else than fields$/,
    )
    script = () => undefined
    const lost = await failure(vaultProvider(approle(), login, {}))
    expect(lost.message).toMatch(/no answer from 127\.0\.0\.1:\d+/)
    const { approleSecretIdFile: _, ...without } = approle()
    expect((await failure(vaultProvider(without, login, {}))).message).toContain(
      'there is no secret id',
    )
    script = ({ url }) =>
      url.endsWith('/login') ? { body: { auth: { client_token: 't' } } } : { body: { data: {} } }
    expect((await failure(vaultProvider(approle(), login, {}))).message).toContain(
      'the request for database/creds/app was answered without "username"',
    )
  })
})

describe('Azure workload identity', () => {
  const env = () => ({
    AZURE_CLIENT_ID: 'client-1',
    AZURE_TENANT_ID: 'tenant-1',
    AZURE_FEDERATED_TOKEN_FILE: file('federated', 'token-of-pod'),
    AZURE_AUTHORITY_HOST: `${base}/`,
  })

  test("exchanges the pod's token for one that PostgreSQL takes as password", async () => {
    script = () => ({ body: { access_token: 'token-for-postgres', expires_in: '3599' } })
    expect(await azureProvider(env()).fetch()).toEqual({
      password: 'token-for-postgres',
      lifeMs: 3_599_000,
    })
    expect(heard[0]!.url).toBe('/tenant-1/oauth2/v2.0/token')
    expect(Object.fromEntries(new URLSearchParams(heard[0]!.body))).toEqual({
      grant_type: 'client_credentials',
      client_id: 'client-1',
      client_assertion_type: 'urn:ietf:params:oauth:client-assertion-type:jwt-bearer',
      client_assertion: 'token-of-pod',
      scope: 'https://ossrdbms-aad.database.windows.net/.default',
    })
  })

  test('says which variable is missing, and what the service answered', async () => {
    expect((await failure(azureProvider({}))).message).toBe(
      'no credentials from Azure workload identity: AZURE_TENANT_ID is not set',
    )
    script = () => ({ status: 401, body: { error: 'token-of-pod' } })
    expect((await failure(azureProvider(env()))).message).toMatch(/answered with status 401$/)
  })
})

describe('D29: RDS by IAM', () => {
  const place = { host: 'db.x.eu-west-1.rds.amazonaws.com', port: 5432, user: 'app' }
  const keys = { AccessKeyId: 'AK', SecretAccessKey: 'SK', Token: 'ST', SessionToken: 'ST' }
  const nowhere = { HOME: directory, AWS_EC2_METADATA_DISABLED: 'true' }

  test('the region is that of the name', () => {
    expect(regionOf(place.host)).toBe('eu-west-1')
    expect(regionOf('db.cluster-x.cn-north-1.rds.amazonaws.com.cn')).toBe('cn-north-1')
    expect(regionOf('db.internal')).toBeUndefined()
  })

  test('keys of the environment sign a token, without asking anybody', async () => {
    const env = { AWS_ACCESS_KEY_ID: 'AK', AWS_SECRET_ACCESS_KEY: 'SK' }
    const lease = await rdsProvider(place, env, systemClock).fetch()
    expect(lease.lifeMs).toBe(900_000)
    expect(lease.password).toMatch(
      /^db\.x\.eu-west-1\.rds\.amazonaws\.com:5432\/\?Action=connect&DBUser=app&.*&X-Amz-Signature=[0-9a-f]{64}$/,
    )
    expect(heard).toEqual([])
  })

  test('keys come from the shared file, a container, a web identity and the instance', async () => {
    file(
      'aws',
      '[other]\naws_access_key_id = no\n[default]\naws_access_key_id = A\naws_secret_access_key = S\n',
    )
    expect(
      await findAwsKeys({ ...nowhere, AWS_SHARED_CREDENTIALS_FILE: join(directory, 'aws') }, 'r'),
    ).toEqual({ keys: { accessKeyId: 'A', secretAccessKey: 'S' } })
    script = () => ({ body: { ...keys, Expiration: '2030-01-01T00:00:00Z' } })
    const found = {
      keys: { accessKeyId: 'AK', secretAccessKey: 'SK', sessionToken: 'ST' },
      expiresAtMs: Date.parse('2030-01-01T00:00:00Z'),
    }
    expect(
      await findAwsKeys(
        {
          ...nowhere,
          AWS_CONTAINER_CREDENTIALS_FULL_URI: `${base}/keys`,
          AWS_CONTAINER_AUTHORIZATION_TOKEN: 'allow',
        },
        'r',
      ),
    ).toEqual(found)
    expect(heard.at(-1)!.headers.authorization).toBe('allow')
    script = () => ({
      body: {
        AssumeRoleWithWebIdentityResponse: {
          AssumeRoleWithWebIdentityResult: {
            Credentials: { ...keys, Expiration: Date.parse('2030-01-01T00:00:00Z') / 1000 },
          },
        },
      },
    })
    expect(
      await findAwsKeys(
        {
          ...nowhere,
          AWS_WEB_IDENTITY_TOKEN_FILE: file('web', 'web.token'),
          AWS_ROLE_ARN: 'arn:aws:iam::1:role/r',
          AWS_ENDPOINT_URL_STS: base,
        },
        'r',
      ),
    ).toEqual(found)
    expect(new URLSearchParams(heard.at(-1)!.body).get('WebIdentityToken')).toBe('web.token')
    script = ({ url }) => {
      if (url === '/latest/api/token') return { body: 'imds-token' }
      return url.endsWith('/security-credentials/')
        ? { body: 'the-role\n' }
        : { body: { ...keys, Expiration: '2030-01-01T00:00:00Z' } }
    }
    expect(
      await findAwsKeys({ HOME: directory, AWS_EC2_METADATA_SERVICE_ENDPOINT: base }, 'r'),
    ).toEqual(found)
    expect(heard.at(-1)).toMatchObject({
      url: '/latest/meta-data/iam/security-credentials/the-role',
      headers: { 'x-aws-ec2-metadata-token': 'imds-token' },
    })
  })

  test('a token does not outlive its keys, and expired keys are refused', async () => {
    const env = { ...nowhere, AWS_CONTAINER_CREDENTIALS_FULL_URI: `${base}/keys` }
    const soon = new Date(Date.now() + 60_000).toISOString()
    script = () => ({ body: { ...keys, Expiration: soon } })
    const lease = await rdsProvider(place, env, systemClock).fetch()
    expect(lease.lifeMs).toBeLessThanOrEqual(60_000)
    script = () => ({ body: { ...keys, Expiration: '2020-01-01T00:00:00Z' } })
    expect((await failure(rdsProvider(place, env, systemClock))).message).toContain(
      'the AWS keys have expired',
    )
    expect((await failure(rdsProvider(place, nowhere, systemClock))).message).toContain(
      'there are no AWS keys',
    )
    expect(
      (await failure(rdsProvider({ ...place, host: 'db.internal' }, nowhere, systemClock))).message,
    ).toContain('the region is not known')
  })
})

describe('what is kept', () => {
  test('is fetched once for many, again before it expires, and holds on while fetching fails', async () => {
    const clock = new FakeClock()
    let n = 0
    let isBroken = false
    const source = keepCredentials(
      {
        name: 'test',
        refreshPercent: 80,
        fetch: async () => {
          if (isBroken) throw new Error('down')
          return { password: `p${++n}`, lifeMs: 1000 }
        },
      },
      clock,
    )
    const many = await Promise.all([source.get(), source.get(), source.get()])
    expect(many.map(({ password }) => password)).toEqual(['p1', 'p1', 'p1'])
    void clock.advance(700)
    expect((await source.get()).password).toBe('p1')
    void clock.advance(150)
    expect((await source.get()).password).toBe('p1')
    await Promise.resolve()
    expect(n).toBe(2)
    expect((await source.get()).password).toBe('p2')
    isBroken = true
    void clock.advance(900)
    expect((await source.get()).password).toBe('p2')
    void clock.advance(200)
    await expect(source.get()).rejects.toMatchObject({ code: 'SERVER_CREDENTIALS_FAILED' })
    isBroken = false
    expect((await source.get()).password).toBe('p3')
  })
})
