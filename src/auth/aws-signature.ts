/**
 * AWS Signature Version 4: requests signed in their address (for RDS tokens), and what all of it is made from. Pure.
 * @see AWS documentation, "Create a signed AWS API request"
 */
import { createHash, createHmac } from 'node:crypto'

export interface AwsKeys {
  readonly accessKeyId: string
  readonly secretAccessKey: string
  readonly sessionToken?: string
}

export interface AwsRequest {
  readonly method: string
  readonly host: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  /** Hash of the body in hex; that of an empty one when absent. */
  readonly payloadHash?: string
}

export interface AwsScope {
  readonly region: string
  readonly service: string
  /** Seconds count, not milliseconds. */
  readonly at: Date
}

const ALGORITHM = 'AWS4-HMAC-SHA256'

const sha256Hex = (text: string): string => createHash('sha256').update(text).digest('hex')
const hmac = (key: string | Buffer, text: string): Buffer =>
  createHmac('sha256', key).update(text).digest()

/** `20150830T123600Z` */
export const amzDate = (at: Date): string => at.toISOString().replace(/[-:]|\.\d{3}/g, '')

/** All but unreserved characters of RFC 3986 in percent. */
export const uriEncode = (text: string): string =>
  encodeURIComponent(text).replace(
    /[!'()*]/g,
    (character) => `%${character.charCodeAt(0).toString(16).toUpperCase()}`,
  )

const scopeOf = ({ region, service, at }: AwsScope): string =>
  `${amzDate(at).slice(0, 8)}/${region}/${service}/aws4_request`

export function canonicalQuery(query: Readonly<Record<string, string>>): string {
  return Object.entries(query)
    .map(([name, value]) => [uriEncode(name), uriEncode(value)] as const)
    .sort(([a, x], [b, y]) => (a === b ? (x < y ? -1 : 1) : a < b ? -1 : 1))
    .map(([name, value]) => `${name}=${value}`)
    .join('&')
}

interface CanonicalHeaders {
  readonly text: string
  readonly names: string
}

function canonicalHeaders(request: AwsRequest): CanonicalHeaders {
  const all = Object.entries({ ...request.headers, host: request.host })
    .map(([name, value]) => [name.toLowerCase(), value.trim().replace(/ +/g, ' ')] as const)
    .sort(([a], [b]) => (a < b ? -1 : 1))
  return {
    text: all.map(([name, value]) => `${name}:${value}\n`).join(''),
    names: all.map(([name]) => name).join(';'),
  }
}

export function canonicalRequest(request: AwsRequest): string {
  const { text, names } = canonicalHeaders(request)
  const path = request.path.split('/').map(uriEncode).join('/')
  const payload = request.payloadHash ?? sha256Hex('')
  return [request.method, path, canonicalQuery(request.query), text, names, payload].join('\n')
}

export function stringToSign(canonical: string, scope: AwsScope): string {
  return [ALGORITHM, amzDate(scope.at), scopeOf(scope), sha256Hex(canonical)].join('\n')
}

export function signature(text: string, secretAccessKey: string, scope: AwsScope): string {
  const day = hmac(`AWS4${secretAccessKey}`, amzDate(scope.at).slice(0, 8))
  const key = hmac(hmac(hmac(day, scope.region), scope.service), 'aws4_request')
  return hmac(key, text).toString('hex')
}

/** The value of an Authorization header. */
export function authorization(request: AwsRequest, keys: AwsKeys, scope: AwsScope): string {
  const text = stringToSign(canonicalRequest(request), scope)
  const { names } = canonicalHeaders(request)
  const credential = `${keys.accessKeyId}/${scopeOf(scope)}`
  const signed = signature(text, keys.secretAccessKey, scope)
  return `${ALGORITHM} Credential=${credential}, SignedHeaders=${names}, Signature=${signed}`
}

/** The query of an address that carries its own signature. */
export function presignedQuery(
  request: AwsRequest,
  keys: AwsKeys,
  scope: AwsScope,
  expiresSec: number,
): string {
  const query = {
    ...request.query,
    'X-Amz-Algorithm': ALGORITHM,
    'X-Amz-Credential': `${keys.accessKeyId}/${scopeOf(scope)}`,
    'X-Amz-Date': amzDate(scope.at),
    'X-Amz-Expires': String(expiresSec),
    'X-Amz-SignedHeaders': canonicalHeaders(request).names,
    ...(keys.sessionToken === undefined ? {} : { 'X-Amz-Security-Token': keys.sessionToken }),
  }
  const text = stringToSign(canonicalRequest({ ...request, query }), scope)
  return `${canonicalQuery(query)}&X-Amz-Signature=${signature(text, keys.secretAccessKey, scope)}`
}

/** RDS believes a token for a quarter of an hour. */
export const RDS_TOKEN_SEC = 900

/** The password of an RDS login by IAM. */
export function rdsToken(
  at: { readonly host: string; readonly port: number; readonly user: string },
  keys: AwsKeys,
  scope: Omit<AwsScope, 'service'>,
): string {
  const host = `${at.host}:${at.port}`
  const request = { method: 'GET', host, path: '/', query: { Action: 'connect', DBUser: at.user } }
  const query = presignedQuery(request, keys, { ...scope, service: 'rds-db' }, RDS_TOKEN_SEC)
  return `${host}/?${query}`
}
