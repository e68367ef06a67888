/**
 * SCRAM-SHA-256 as the side that knows a password. Pure: messages in, messages out.
 * The server is proved too: `finish` fails when it does not know the password's verifier.
 * @see RFC 5802; `src/interfaces/libpq/fe-auth-scram.c`
 */
import { timingSafeEqual } from 'node:crypto'
import { engineError } from '../errors/engine-error.js'
import {
  AttributeReader,
  type ChannelBinding,
  checkNonce,
  malformed,
  newNonce,
  SCRAM_SHA_256,
  SCRAM_SHA_256_PLUS,
} from './scram-message.js'
import {
  fromBase64,
  hmac,
  SCRAM_ITERATIONS_MAX,
  type ScramKeys,
  scramKeys,
  sha256,
} from './scram-verifier.js'

/** Keys that stand for a password with the verifier that they were derived for, and no other. */
export interface ScramSecretKeys {
  readonly clientKey: Buffer
  readonly serverKey: Buffer
  readonly salt: Buffer
  readonly iterations: number
}

export interface ScramClientOptions {
  /** With it SCRAM-SHA-256-PLUS is spoken. */
  readonly channelBinding?: ChannelBinding
  /** The connection could bind but the server did not offer it: says 'y', so that a server that did offer it notices. */
  readonly couldBind?: boolean
  readonly nonce?: () => string
}

export class ScramClient {
  readonly #secret: string | ScramSecretKeys
  readonly #options: ScramClientOptions
  readonly #gs2Header: string
  readonly #nonce: string
  #authMessage = ''
  #serverSignature: Buffer | undefined
  #finished = false

  /** `secret` is a password, or the keys that a client's own exchange has shown. */
  constructor(secret: string | ScramSecretKeys, options: ScramClientOptions = {}) {
    this.#secret = secret
    this.#options = options
    this.#gs2Header = options.channelBinding
      ? `p=${options.channelBinding.type},,`
      : options.couldBind
        ? 'y,,'
        : 'n,,'
    this.#nonce = (options.nonce ?? newNonce)()
  }

  get mechanism(): string {
    return this.#options.channelBinding ? SCRAM_SHA_256_PLUS : SCRAM_SHA_256
  }

  /** True once the server has proved itself. An AuthenticationOk before that must be refused. */
  get finished(): boolean {
    return this.#finished
  }

  /** client-first-message; the user's name is that of the startup packet, so none stands here, as in libpq. */
  first(): Buffer {
    return Buffer.from(`${this.#gs2Header}${this.#firstBare}`)
  }

  get #firstBare(): string {
    return `n=,r=${this.#nonce}`
  }

  /** Takes server-first-message, gives client-final-message. @throws AUTH_SCRAM_MALFORMED */
  async continue(serverFirst: Buffer): Promise<Buffer> {
    const text = serverFirst.toString('utf8')
    const reader = new AttributeReader(text)
    const nonce = checkNonce(reader.take('r'))
    const salt = fromBase64(reader.take('s'))
    const iterationText = reader.take('i')
    reader.skipExtensions()
    if (!nonce.startsWith(this.#nonce) || nonce.length === this.#nonce.length) {
      malformed('nonce is not ours')
    }
    if (!salt || salt.length === 0) return malformed('bad salt')
    const iterations = /^\d{1,8}$/.test(iterationText) ? Number(iterationText) : 0
    if (iterations < 1 || iterations > SCRAM_ITERATIONS_MAX) malformed('bad iteration count')

    const keys = await this.#keys(salt, iterations)
    const bound = Buffer.concat([
      Buffer.from(this.#gs2Header),
      this.#options.channelBinding?.bytes ?? Buffer.alloc(0),
    ])
    const withoutProof = `c=${bound.toString('base64')},r=${nonce}`
    this.#authMessage = `${this.#firstBare},${text},${withoutProof}`
    const proof = xor(keys.clientKey, hmac(keys.storedKey, this.#authMessage))
    this.#serverSignature = hmac(keys.serverKey, this.#authMessage)
    return Buffer.from(`${withoutProof},p=${proof.toString('base64')}`)
  }

  async #keys(salt: Buffer, iterations: number): Promise<ScramKeys> {
    const secret = this.#secret
    if (typeof secret === 'string') return await scramKeys(secret, salt, iterations)
    if (!secret.salt.equals(salt) || secret.iterations !== iterations) {
      throw engineError('AUTH_KEYS_FOREIGN')
    }
    const { clientKey, serverKey } = secret
    return { clientKey, serverKey, storedKey: sha256(clientKey) }
  }

  /** Takes server-final-message. @throws AUTH_SERVER_UNPROVED, AUTH_SCRAM_MALFORMED */
  finish(serverFinal: Buffer): void {
    const expected = this.#serverSignature ?? malformed('message out of order')
    const reader = new AttributeReader(serverFinal.toString('utf8'))
    if (reader.peek() === 'e')
      throw engineError('AUTH_SERVER_UNPROVED', { reason: reader.take('e') })
    const signature = fromBase64(reader.take('v'))
    reader.skipExtensions()
    if (signature?.length !== expected.length || !timingSafeEqual(signature, expected)) {
      throw engineError('AUTH_SERVER_UNPROVED', { reason: 'wrong signature' })
    }
    this.#finished = true
  }
}

export function xor(a: Buffer, b: Buffer): Buffer {
  const out = Buffer.alloc(a.length)
  for (let i = 0; i < a.length; i++) out[i] = (a[i] as number) ^ (b[i] as number)
  return out
}
