/** The text of SCRAM messages: comma-separated attributes `x=value` (RFC 5802, section 5.1). */
import { randomBytes } from 'node:crypto'
import { engineError } from '../errors/engine-error.js'

export const SCRAM_SHA_256 = 'SCRAM-SHA-256'
export const SCRAM_SHA_256_PLUS = 'SCRAM-SHA-256-PLUS'

/** What ties the exchange to the TLS connection under it. */
export interface ChannelBinding {
  readonly type: 'tls-server-end-point'
  readonly bytes: Buffer
}

/** `SCRAM_RAW_NONCE_LEN` in `src/include/common/scram-common.h` is 18 bytes. */
export const newNonce = (): string => randomBytes(18).toString('base64')

/** Takes attributes off the front of a message, in the order that the RFC fixes. */
export class AttributeReader {
  readonly #parts: string[]
  #at = 0

  /** @throws AUTH_SCRAM_MALFORMED when the message is no text */
  constructor(message: string) {
    if (message.includes('\0') || message.includes('\ufffd')) malformed('it is not text')
    this.#parts = message.split(',')
  }

  /** The value of the next attribute, which must have this letter. */
  take(letter: string): string {
    const part = this.#parts[this.#at++]
    if (part?.[0] !== letter || part[1] !== '=') malformed(`attribute "${letter}" expected`)
    return part.slice(2)
  }

  /** The letter of the next attribute; undefined at the end. */
  peek(): string | undefined {
    return this.#parts[this.#at]?.[0]
  }

  /** The next part, whatever it is. */
  raw(): string {
    const part = this.#parts[this.#at++]
    if (part === undefined) malformed('it ends too early')
    return part
  }

  /** Skips extensions, each `letter=value`; what is no attribute is refused. */
  skipExtensions(): void {
    for (; this.#at < this.#parts.length; this.#at++) {
      if (!/^[A-Za-z]=/.test(this.#parts[this.#at] as string)) malformed('bad extension')
    }
  }

  end(): void {
    if (this.#at < this.#parts.length) malformed('it has text left over')
  }
}

export function malformed(reason: string): never {
  throw engineError('AUTH_SCRAM_MALFORMED', { reason })
}

/** A nonce is printable ASCII without a comma. */
export function checkNonce(nonce: string): string {
  if (!/^[\x21-\x2b\x2d-\x7e]+$/.test(nonce)) malformed('bad nonce')
  return nonce
}
