/**
 * What a server keeps of a password for SCRAM-SHA-256 (RFC 5802, RFC 7677), in PostgreSQL's text form.
 *
 *   SCRAM-SHA-256$<iterations>:<salt>$<StoredKey>:<ServerKey>     (base 64)
 */
import { createHash, createHmac, pbkdf2, pbkdf2Sync, randomBytes } from 'node:crypto'
import { promisify } from 'node:util'
import { passwordBytes } from './saslprep.js'

/** `SCRAM_SHA_256_DEFAULT_ITERATIONS` in `src/include/common/scram-common.h`. */
export const SCRAM_ITERATIONS = 4096
/** `SCRAM_DEFAULT_SALT_LEN` */
export const SCRAM_SALT_BYTES = 16
/** More is an attack: it would keep a core busy for seconds. */
export const SCRAM_ITERATIONS_MAX = 10_000_000
const KEY_BYTES = 32

export interface ScramVerifier {
  readonly iterations: number
  readonly salt: Buffer
  readonly storedKey: Buffer
  readonly serverKey: Buffer
}

/** The keys that both sides derive from a password. */
export interface ScramKeys {
  readonly clientKey: Buffer
  readonly storedKey: Buffer
  readonly serverKey: Buffer
}

export const hmac = (key: Buffer, text: string | Buffer): Buffer =>
  createHmac('sha256', key).update(text).digest()
export const sha256 = (bytes: string | Buffer): Buffer =>
  createHash('sha256').update(bytes).digest()

function keysOf(saltedPassword: Buffer): ScramKeys {
  const clientKey = hmac(saltedPassword, 'Client Key')
  return {
    clientKey,
    storedKey: sha256(clientKey),
    serverKey: hmac(saltedPassword, 'Server Key'),
  }
}

/** Keys derived lately; passwords stand in it only as hashes. Thousands of iterations are too dear for each login. */
const cache = new Map<string, ScramKeys>()
const CACHE_LIMIT = 1000

function cacheKey(password: Buffer, salt: Buffer, iterations: number): string {
  const length = Buffer.alloc(4)
  length.writeUInt32BE(password.length)
  const hash = createHash('sha256').update(length).update(password).update(salt)
  return hash.update(String(iterations)).digest('base64')
}

function remember(key: string, keys: ScramKeys): ScramKeys {
  if (cache.size >= CACHE_LIMIT) cache.delete(cache.keys().next().value as string)
  cache.set(key, keys)
  return keys
}

/** Blocks for a millisecond or so the first time; for passwords that stand in the configuration. */
export function scramKeysSync(password: string, salt: Buffer, iterations: number): ScramKeys {
  const bytes = passwordBytes(password)
  const key = cacheKey(bytes, salt, iterations)
  const known = cache.get(key)
  if (known) return known
  return remember(key, keysOf(pbkdf2Sync(bytes, salt, iterations, KEY_BYTES, 'sha256')))
}

const pbkdf2Async = promisify(pbkdf2)

/** Off the main thread, because salt and iterations come from the other side. */
export async function scramKeys(
  password: string,
  salt: Buffer,
  iterations: number,
): Promise<ScramKeys> {
  const bytes = passwordBytes(password)
  const key = cacheKey(bytes, salt, iterations)
  const known = cache.get(key)
  if (known) return known
  return remember(key, keysOf(await pbkdf2Async(bytes, salt, iterations, KEY_BYTES, 'sha256')))
}

/** A new verifier of a password, as CREATE ROLE … PASSWORD stores it. */
export function makeScramVerifier(
  password: string,
  options: { readonly salt?: Buffer; readonly iterations?: number } = {},
): string {
  const salt = options.salt ?? randomBytes(SCRAM_SALT_BYTES)
  const iterations = options.iterations ?? SCRAM_ITERATIONS
  const keys = scramKeysSync(password, salt, iterations)
  return formatScramVerifier({ iterations, salt, ...keys })
}

export function formatScramVerifier(verifier: ScramVerifier): string {
  const text = (bytes: Buffer) => bytes.toString('base64')
  return `SCRAM-SHA-256$${verifier.iterations}:${text(verifier.salt)}$${text(verifier.storedKey)}:${text(verifier.serverKey)}`
}

/** Reads a verifier; undefined when the text is none (then it is a password in clear, or an md5 hash). */
export function parseScramVerifier(text: string): ScramVerifier | undefined {
  const match = /^SCRAM-SHA-256\$(\d{1,10}):([^$:]+)\$([^$:]+):([^$:]+)$/.exec(text)
  if (!match) return undefined
  const iterations = Number(match[1])
  const salt = fromBase64(match[2] as string)
  const storedKey = fromBase64(match[3] as string)
  const serverKey = fromBase64(match[4] as string)
  if (!salt || storedKey?.length !== KEY_BYTES || serverKey?.length !== KEY_BYTES) return undefined
  if (iterations < 1 || iterations > SCRAM_ITERATIONS_MAX || salt.length === 0) return undefined
  return { iterations, salt, storedKey, serverKey }
}

/** Strict, unlike Buffer.from: undefined for anything that is not canonical base 64. */
export function fromBase64(text: string): Buffer | undefined {
  const bytes = Buffer.from(text, 'base64')
  return bytes.toString('base64') === text ? bytes : undefined
}
