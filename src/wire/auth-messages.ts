/**
 * Authentication requests (server) and their answers, all of tag 'p' (client). SASL payloads are bytes here; auth/ reads them.
 * @see PostgreSQL documentation, "Message Formats"; `src/include/libpq/protocol.h`, AUTH_REQ_*
 */
import { BodyReader } from './body-reader.js'
import type { FrameWriter } from './frame-writer.js'
import { backend, frontend } from './tags.js'

/** Int32 code · what belongs to it */
export type Authentication =
  | { readonly kind: 'ok' | 'kerberosV5' | 'cleartext' | 'gss' | 'sspi' }
  | { readonly kind: 'md5'; readonly salt: Buffer }
  | { readonly kind: 'sasl'; readonly mechanisms: readonly string[] }
  | { readonly kind: 'gssContinue' | 'saslContinue' | 'saslFinal'; readonly bytes: Buffer }

const codes = {
  ok: 0,
  kerberosV5: 2,
  cleartext: 3,
  md5: 5,
  gss: 7,
  gssContinue: 8,
  sspi: 9,
  sasl: 10,
  saslContinue: 11,
  saslFinal: 12,
} as const satisfies Record<Authentication['kind'], number>

const kinds = new Map(
  Object.entries(codes).map(([kind, code]) => [code as number, kind as Authentication['kind']]),
)

export function encodeAuthentication(writer: FrameWriter, message: Authentication): void {
  writer.begin(backend.authentication).int32(codes[message.kind])
  if (message.kind === 'md5') writer.bytes(message.salt)
  else if (message.kind === 'sasl') {
    for (const mechanism of message.mechanisms) writer.cstring(mechanism)
    writer.byte(0)
  } else if ('bytes' in message) writer.bytes(message.bytes)
  writer.end()
}

/** @throws WIRE_BAD_FIELD for a method that does not exist */
export function decodeAuthentication(body: Buffer): Authentication {
  const reader = new BodyReader('R', body)
  const code = reader.int32('method')
  const kind = kinds.get(code)
  if (kind === undefined) return reader.bad('method', code)
  const message = readAuthentication(kind, reader)
  reader.end()
  return message
}

function readAuthentication(kind: Authentication['kind'], reader: BodyReader): Authentication {
  switch (kind) {
    case 'md5':
      return { kind, salt: reader.bytes(4, 'salt') }
    case 'sasl': {
      const mechanisms: string[] = []
      for (let name = reader.cstring('mechanism'); name !== ''; ) {
        mechanisms.push(name)
        name = reader.cstring('mechanism')
      }
      return { kind, mechanisms }
    }
    case 'gssContinue':
    case 'saslContinue':
    case 'saslFinal':
      return { kind, bytes: reader.rest() }
    case 'ok':
    case 'kerberosV5':
    case 'cleartext':
    case 'gss':
    case 'sspi':
      return { kind }
  }
}

/** Cstring: a password in clear, or `md5…`. */
export function encodePasswordMessage(writer: FrameWriter, password: string): void {
  writer.begin(frontend.password).cstring(password).end()
}

export function decodePasswordMessage(body: Buffer): string {
  const reader = new BodyReader('p', body)
  const password = reader.cstring('password')
  reader.end()
  return password
}

/** Cstring mechanism · Int32 length or −1 · bytes */
export interface SaslInitialResponse {
  readonly mechanism: string
  readonly response: Buffer | null
}

export function encodeSaslInitialResponse(writer: FrameWriter, message: SaslInitialResponse): void {
  writer.begin(frontend.password).cstring(message.mechanism).value(message.response).end()
}

export function decodeSaslInitialResponse(body: Buffer): SaslInitialResponse {
  const reader = new BodyReader('p', body)
  const mechanism = reader.cstring('mechanism')
  const response = reader.value('response')
  reader.end()
  return { mechanism, response }
}

/** Bytes: of SASLResponse and GSSResponse. */
export function encodeSaslResponse(writer: FrameWriter, response: Uint8Array): void {
  writer.begin(frontend.password).bytes(response).end()
}

/** The body itself. */
export function decodeSaslResponse(body: Buffer): Buffer {
  return body
}
