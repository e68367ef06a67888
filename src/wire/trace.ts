/**
 * Messages as text, in the form of libpq's PQtrace: direction, length, name, fields, split by tabs.
 * Passwords, SASL payloads and cancel keys are never printed.
 * @see `src/interfaces/libpq/fe-trace.c` (PostgreSQL 17)
 *
 *   F	13	Query	 "SELECT 1"
 */
import { isEngineError } from '../errors/engine-error.js'
import { BodyReader } from './body-reader.js'
import { FrameReader } from './frame-reader.js'
import { StartupReader } from './startup-messages.js'
import { backend, CANCEL_REQUEST_CODE, GSSENC_REQUEST_CODE, SSL_REQUEST_CODE } from './tags.js'

/** F: sent by the client; B: sent by the server. */
export type Direction = 'F' | 'B'

export interface TraceOptions {
  /** Prints NNNN for what differs from run to run (table OIDs, process ids), as PQTRACE_REGRESS_MODE does. */
  readonly regress?: boolean
  /** What a 'p' message is. */
  readonly password?: PasswordKind
}

/** Prints the fields of one message; what the layout does not say is left unread and shows as an error. */
type Layout = (print: FieldPrinter) => void

class FieldPrinter {
  readonly reader: BodyReader
  readonly #regress: boolean
  #text = ''

  constructor(reader: BodyReader, regress: boolean) {
    this.reader = reader
    this.#regress = regress
  }

  get text(): string {
    return this.#text
  }

  raw(text: string): void {
    this.#text += ` ${text}`
  }

  byte(): number {
    const value = this.reader.byte('byte')
    this.raw(value > 0x1f && value < 0x7f ? String.fromCharCode(value) : hex(value))
    return value
  }

  int16(): void {
    // Unsigned, as libpq prints it: -1 shows as 65535.
    this.raw(String(this.reader.uint16('int16')))
  }

  int32(varies = false): void {
    const value = this.reader.int32('int32')
    this.raw(varies && this.#regress ? 'NNNN' : String(value))
  }

  string(): void {
    // libpq prints line breaks raw; here one message is one line, so that no text can forge another.
    this.raw(
      `"${this.reader.cstring('string').replace(/\p{Cc}/gu, (one) => hex(one.charCodeAt(0)))}"`,
    )
  }

  chars(length: number): void {
    this.raw(`'${printable(this.reader.bytes(length, 'bytes'))}'`)
  }

  /** The rest, unprinted; libpq's own placeholder. */
  hidden(): void {
    this.raw(`'BBBB'`)
    this.reader.rest()
  }

  /** A string that differs between versions of the server. */
  source(): void {
    if (this.#regress) {
      this.reader.cstring('string')
      this.raw('"SSSS"')
    } else this.string()
  }

  /** Int16 count and that many items. */
  list(item: () => void): void {
    const count = this.reader.uint16('count')
    this.raw(String(count))
    for (let i = 0; i < count; i++) item()
  }

  /** Int32 length and bytes. */
  value(): void {
    const length = this.reader.int32('length')
    this.raw(String(length))
    if (length >= 0) this.chars(length)
  }
}

const hex = (value: number): string => `\\x${value.toString(16).padStart(2, '0')}`

function printable(bytes: Buffer): string {
  let text = ''
  for (const byte of bytes) {
    text += byte > 0x1f && byte < 0x7f ? String.fromCharCode(byte) : hex(byte)
  }
  return text
}

const nothing: Layout = () => undefined
const oneString: Layout = (print) => print.string()
const twoStrings: Layout = (print) => {
  print.string()
  print.string()
}
const named: Layout = (print) => {
  print.byte()
  print.string()
}
const errorFields: Layout = (print) => {
  for (let letter = print.byte(); letter !== 0; letter = print.byte()) {
    if ('FLR'.includes(String.fromCharCode(letter))) print.source()
    else print.string()
  }
}
const copyResponse: Layout = (print) => {
  print.byte()
  print.list(() => print.int16())
}

const bind: Layout = (print) => {
  twoStrings(print)
  print.list(() => print.int16())
  print.list(() => print.value())
  print.list(() => print.int16())
}

const functionCall: Layout = (print) => {
  print.int32(true)
  print.list(() => print.int16())
  print.list(() => print.value())
  print.int16()
}

const rowDescription: Layout = (print) =>
  print.list(() => {
    print.string()
    print.int32(true)
    print.int16()
    print.int32(true)
    print.int16()
    print.int32()
    print.int16()
  })

const keyData: Layout = (print) => {
  print.int32(true)
  print.raw('NNNN')
  print.reader.rest()
}

const notification: Layout = (print) => {
  print.int32(true)
  twoStrings(print)
}

const negotiateVersion: Layout = (print) => {
  print.int32()
  const count = print.reader.int32('count')
  print.raw(String(count))
  for (let i = 0; i < count; i++) print.string()
}

/** Secrets, and rows of COPY, which are nobody's business and fill a disk. */
const hidden: Layout = (print) => print.hidden()

/** What a 'p' message is depends on the request before it. */
export type PasswordKind = 'AuthenticationResponse' | 'SASLInitialResponse' | 'SASLResponse'

const passwordLayouts: Record<PasswordKind, Layout> = {
  AuthenticationResponse: hidden,
  SASLInitialResponse: (print) => {
    print.string()
    print.int32()
    print.hidden()
  },
  SASLResponse: hidden,
}

const frontendLayouts: Record<string, readonly [string, Layout]> = {
  B: ['Bind', bind],
  C: ['Close', named],
  D: ['Describe', named],
  E: [
    'Execute',
    (print) => {
      print.string()
      print.int32()
    },
  ],
  F: ['FunctionCall', functionCall],
  H: ['Flush', nothing],
  P: [
    'Parse',
    (print) => {
      twoStrings(print)
      print.list(() => print.int32())
    },
  ],
  Q: ['Query', oneString],
  S: ['Sync', nothing],
  X: ['Terminate', nothing],
  c: ['CopyDone', nothing],
  d: ['CopyData', hidden],
  f: ['CopyFail', oneString],
}

const backendLayouts: Record<string, readonly [string, Layout]> = {
  '1': ['ParseComplete', nothing],
  '2': ['BindComplete', nothing],
  '3': ['CloseComplete', nothing],
  A: ['NotificationResponse', notification],
  C: ['CommandComplete', oneString],
  D: ['DataRow', (print) => print.list(() => print.value())],
  E: ['ErrorResponse', errorFields],
  G: ['CopyInResponse', copyResponse],
  H: ['CopyOutResponse', copyResponse],
  I: ['EmptyQueryResponse', nothing],
  K: ['BackendKeyData', keyData],
  N: ['NoticeResponse', errorFields],
  S: ['ParameterStatus', twoStrings],
  T: ['RowDescription', rowDescription],
  V: ['FunctionCallResponse', (print) => print.value()],
  W: ['CopyBothResponse', copyResponse],
  Z: ['ReadyForQuery', (print) => void print.byte()],
  c: ['CopyDone', nothing],
  d: ['CopyData', hidden],
  n: ['NoData', nothing],
  s: ['PortalSuspended', nothing],
  t: ['ParameterDescription', (print) => print.list(() => print.int32(true))],
  v: ['NegotiateProtocolVersion', negotiateVersion],
}

const authentications: Record<number, readonly [string, Layout]> = {
  0: ['AuthenticationOk', nothing],
  2: ['AuthenticationKerberosV5', nothing],
  3: ['AuthenticationCleartextPassword', nothing],
  5: ['AuthenticationMD5Password', hidden],
  7: ['AuthenticationGSS', nothing],
  8: ['AuthenticationGSSContinue', hidden],
  9: ['AuthenticationSSPI', nothing],
  10: [
    'AuthenticationSASL',
    (print) => {
      while (print.reader.remaining > 0) print.string()
    },
  ],
  11: ['AuthenticationSASLContinue', hidden],
  12: ['AuthenticationSASLFinal', hidden],
}

/** One line, without newline, for the frame `[start, end)` of `buffer`. Never throws on hostile bytes. */
export function traceFrame(
  direction: Direction,
  buffer: Buffer,
  start = 0,
  end = buffer.length,
  options: TraceOptions = {},
): string {
  const tag = buffer[start] as number
  const letter = String.fromCharCode(tag)
  const reader = new BodyReader(letter, buffer.subarray(start + 5, end))
  const varies = options.regress && direction === 'B' && (letter === 'E' || letter === 'N')
  const head = `${direction}\t${varies ? 'NN' : end - start - 1}\t`
  if (direction === 'B' && letter === 'R' && reader.remaining >= 4) {
    const code = reader.int32('method')
    const [name, layout] = authentications[code] ?? [`Unknown authentication: ${code}`, nothing]
    return head + printMessage(name, layout, reader, options)
  }
  if (direction === 'F' && letter === 'p') {
    const kind = options.password ?? 'AuthenticationResponse'
    return head + printMessage(kind, passwordLayouts[kind], reader, options)
  }
  const known = (direction === 'F' ? frontendLayouts : backendLayouts)[letter]
  if (!known) return `${head}Unknown message: ${tag.toString(16).padStart(2, '0')}`
  return head + printMessage(known[0], known[1], reader, options)
}

function printMessage(
  name: string,
  layout: Layout,
  reader: BodyReader,
  options: TraceOptions,
): string {
  const print = new FieldPrinter(reader, options.regress ?? false)
  try {
    layout(print)
    reader.end()
  } catch (error) {
    if (!isEngineError(error)) throw error
    return `${name}\t${print.text} (${error.message})`
  }
  return print.text === '' ? name : `${name}\t${print.text}`
}

/** One line for a packet without a tag; `body` is without its length. */
export function traceStartup(body: Buffer): string {
  const head = `F\t${body.length + 4}\t`
  const reader = new BodyReader('startup', body)
  const code = body.length >= 4 ? body.readInt32BE(0) : 0
  const version: Layout = (print) => {
    print.int16()
    print.int16()
  }
  if (code === SSL_REQUEST_CODE) return head + printMessage('SSLRequest', version, reader, {})
  if (code === GSSENC_REQUEST_CODE) return head + printMessage('GSSENCRequest', version, reader, {})
  if (code === CANCEL_REQUEST_CODE) return head + printMessage('CancelRequest', cancel, reader, {})
  const startup: Layout = (print) => {
    version(print)
    while (print.reader.remaining > 1) twoStrings(print)
    print.reader.byte('end')
  }
  return head + printMessage('StartupMessage', startup, reader, {})
}

const cancel: Layout = (print) => {
  print.int16()
  print.int16()
  print.int32()
  print.raw('NNNN')
  print.reader.rest()
}

const passwordKinds: Record<number, PasswordKind> = {
  10: 'SASLInitialResponse',
  11: 'SASLResponse',
}

/** Traces both streams of one connection from its first byte; writes a line a message. */
export class ConnectionTrace {
  readonly #write: (line: string) => void
  readonly #client: FrameReader
  readonly #server: FrameReader
  readonly #startup = new StartupReader()
  #started = false
  /** Requests whose answer is one bare byte. */
  #asked: string[] = []
  #password: PasswordKind = 'AuthenticationResponse'

  constructor(write: (line: string) => void, options: TraceOptions = {}) {
    this.#write = write
    const reader = (direction: Direction) =>
      new FrameReader((tag, buffer, start, end) => {
        write(traceFrame(direction, buffer, start, end, { ...options, password: this.#password }))
        if (direction === 'B' && tag === backend.authentication && end - start >= 9) {
          this.#password = passwordKinds[buffer.readInt32BE(start + 5)] ?? 'AuthenticationResponse'
        }
      })
    this.#client = reader('F')
    this.#server = reader('B')
  }

  /** Bytes that the client sent, in any cut. */
  client(chunk: Buffer): void {
    let rest = chunk
    while (!this.#started && rest.length > 0) {
      const packet = this.#startup.push(rest)
      if (!packet) return
      rest = packet.rest
      const line = traceStartup(packet.body)
      this.#write(line)
      const request = /\t(SSL|GSSENC)Request/.exec(line)?.[1]
      if (request) this.#asked.push(request)
      else this.#started = true
    }
    this.#client.push(rest)
  }

  /** Bytes that the server sent, in any cut. */
  server(chunk: Buffer): void {
    let from = 0
    while (from < chunk.length && this.#asked.length > 0) {
      const answer = String.fromCharCode(chunk[from++] as number)
      this.#write(`B\t1\t${this.#asked.shift()}Response\t ${answer}`)
    }
    this.#server.push(chunk.subarray(from))
  }
}
