/**
 * The packets without a tag that open a connection. A connection may send SSLRequest or GSSENCRequest first,
 * and then its StartupMessage; CancelRequest stands alone.
 *
 *   Int32 length (counts itself) · Int32 version or request code · what belongs to it
 *
 * @see `ProcessStartupPacket` in `src/backend/tcop/backend_startup.c`
 */
import { engineError } from '../errors/engine-error.js'
import { readCancelKey } from './backend-messages.js'
import { BodyReader } from './body-reader.js'
import type { FrameWriter } from './frame-writer.js'
import {
  CANCEL_REQUEST_CODE,
  GSSENC_REQUEST_CODE,
  MAX_STARTUP_BYTES,
  SSL_REQUEST_CODE,
} from './tags.js'

export interface StartupMessage {
  readonly kind: 'startup'
  readonly major: number
  readonly minor: number
  /** In the order sent; a name sent twice has its last value. */
  readonly parameters: ReadonlyMap<string, string>
}

export interface CancelRequest {
  readonly kind: 'cancel'
  readonly processId: number
  readonly secret: Buffer
}

export type StartupPacket =
  | StartupMessage
  | CancelRequest
  | { readonly kind: 'ssl' | 'gssenc' }
  /** A version that is not 3.x; what follows it was not read. */
  | { readonly kind: 'unsupported'; readonly major: number; readonly minor: number }

/** Protocol options, which a server that does not know them must report. */
export const PROTOCOL_OPTION_PREFIX = '_pq_.'

export function encodeStartupMessage(
  writer: FrameWriter,
  message: Omit<StartupMessage, 'kind'>,
): void {
  writer.beginUntagged().int16(message.major).int16(message.minor)
  for (const [name, value] of message.parameters) writer.cstring(name).cstring(value)
  writer.byte(0).end()
}

export function encodeSslRequest(writer: FrameWriter): void {
  writer.beginUntagged().int32(SSL_REQUEST_CODE).end()
}

export function encodeGssencRequest(writer: FrameWriter): void {
  writer.beginUntagged().int32(GSSENC_REQUEST_CODE).end()
}

export function encodeCancelRequest(
  writer: FrameWriter,
  message: { readonly processId: number; readonly secret: Uint8Array },
): void {
  writer.beginUntagged().int32(CANCEL_REQUEST_CODE).int32(message.processId)
  writer.bytes(message.secret).end()
}

/** Reads a packet without its length. @throws WIRE_TRUNCATED, WIRE_BAD_FIELD */
export function decodeStartupPacket(body: Buffer): StartupPacket {
  const reader = new BodyReader('startup', body)
  const code = reader.int32('protocol version')
  if (code === CANCEL_REQUEST_CODE) {
    const processId = reader.int32('process id')
    return { kind: 'cancel', processId, secret: readCancelKey(reader) }
  }
  if (code === SSL_REQUEST_CODE || code === GSSENC_REQUEST_CODE) {
    reader.end()
    return { kind: code === SSL_REQUEST_CODE ? 'ssl' : 'gssenc' }
  }
  const version = { major: code >>> 16, minor: code & 0xffff }
  if (version.major !== 3) return { kind: 'unsupported', ...version }
  const parameters = new Map<string, string>()
  for (let name = reader.cstring('parameter'); name !== ''; ) {
    parameters.set(name, reader.cstring(`value of "${name}"`))
    name = reader.cstring('parameter')
  }
  reader.end()
  return { kind: 'startup', ...version, parameters }
}

/** What a server of `minor` must answer by NegotiateProtocolVersion; undefined when there is nothing to negotiate. */
export function negotiate(
  message: StartupMessage,
  minor: number,
  knownOptions: readonly string[] = [],
): { readonly version: number; readonly unknownOptions: readonly string[] } | undefined {
  const unknownOptions = [...message.parameters.keys()].filter(
    (name) => name.startsWith(PROTOCOL_OPTION_PREFIX) && !knownOptions.includes(name),
  )
  if (message.minor <= minor && unknownOptions.length === 0) return undefined
  return { version: (3 << 16) | Math.min(message.minor, minor), unknownOptions }
}

/** True for the first byte of a TLS handshake: a client that begins with TLS at once. */
export function looksLikeTls(firstByte: number): boolean {
  return firstByte === 0x16
}

/** Collects one packet. What follows it in the same chunk is handed back: behind SSLRequest it must be empty. */
export class StartupReader {
  #pending: Buffer = Buffer.alloc(0)

  /**
   * Feeds bytes; gives the packet's body when it is whole (a view of `chunk` or of memory of its own) and the rest.
   * @throws WIRE_FRAME_LENGTH
   */
  push(chunk: Buffer): { readonly body: Buffer; readonly rest: Buffer } | undefined {
    const bytes = this.#pending.length === 0 ? chunk : Buffer.concat([this.#pending, chunk])
    if (bytes.length >= 4) {
      const length = bytes.readInt32BE(0)
      if (length < 8 || length > MAX_STARTUP_BYTES) {
        throw engineError('WIRE_FRAME_LENGTH', { tag: 'startup', length })
      }
      if (bytes.length >= length) {
        this.#pending = Buffer.alloc(0)
        return { body: bytes.subarray(4, length), rest: bytes.subarray(length) }
      }
    }
    this.#pending = bytes === chunk ? Buffer.from(chunk) : bytes
    return undefined
  }
}
