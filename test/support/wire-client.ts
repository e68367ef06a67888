/** A client that speaks the protocol by hand: what it sends is what it says, and it sees every message that comes. */
import { connect, type Socket } from 'node:net'
import { ScramClient } from '../../src/auth/scram-client.js'
import {
  decodeAuthentication,
  encodeSaslInitialResponse,
  encodeSaslResponse,
} from '../../src/wire/auth-messages.js'
import { decodeBackendKeyData, decodeDataRow } from '../../src/wire/backend-messages.js'
import { encodeCopyData, encodeCopyFail } from '../../src/wire/copy-messages.js'
import { decodeErrorFields, type ErrorFields } from '../../src/wire/error-response.js'
import { FrameReader } from '../../src/wire/frame-reader.js'
import { FrameWriter } from '../../src/wire/frame-writer.js'
import {
  encodeBind,
  encodeClose,
  encodeDescribe,
  encodeEmptyFrontend,
  encodeExecute,
  encodeParse,
  encodeQuery,
} from '../../src/wire/frontend-messages.js'
import { encodeCancelRequest, encodeStartupMessage } from '../../src/wire/startup-messages.js'

export interface Message {
  /** Its letter. */
  readonly tag: string
  readonly body: Buffer
}

export interface WireAddress {
  readonly port: number
  readonly database: string
  readonly user?: string
  readonly password?: string
  /** Of the startup packet. */
  readonly parameters?: Readonly<Record<string, string>>
  /** One of 127.0.0.0/8. */
  readonly localAddress?: string
}

export const written = (write: (writer: FrameWriter) => void): Buffer => {
  const writer = new FrameWriter()
  write(writer)
  return writer.take()
}
export const say = {
  query: (sql: string) => written((writer) => encodeQuery(writer, sql)),
  parse: (name: string, sql: string) =>
    written((writer) => encodeParse(writer, { name, sql, parameterTypes: [] })),
  bind: (statement: string, values: readonly string[] = []) =>
    written((writer) =>
      encodeBind(writer, {
        portal: '',
        statement,
        formats: [],
        values: values.map((value) => Buffer.from(value)),
        resultFormats: [],
      }),
    ),
  describe: (name: string) =>
    written((writer) => encodeDescribe(writer, { kind: 'statement', name })),
  close: (name: string) => written((writer) => encodeClose(writer, { kind: 'statement', name })),
  execute: (maxRows = 0) => written((writer) => encodeExecute(writer, { portal: '', maxRows })),
  copyData: (text: string) => written((writer) => encodeCopyData(writer, Buffer.from(text))),
  copyFail: (why: string) => written((writer) => encodeCopyFail(writer, why)),
  copyDone: () => written((writer) => encodeEmptyFrontend(writer, 'copyDone')),
  sync: () => written((writer) => encodeEmptyFrontend(writer, 'sync')),
  terminate: () => written((writer) => encodeEmptyFrontend(writer, 'terminate')),
}

/** The columns of a DataRow as text. */
export const textsOf = ({ body }: Message): (string | null)[] =>
  decodeDataRow(body).map((value) => value?.toString() ?? null)
/** The fields of an ErrorResponse or NoticeResponse by their letters. */
export const fieldsOf = ({ body }: Message): ErrorFields => decodeErrorFields(body)

/** The rows of one answer. @throws WireError with the fields of its first error */
export function rowsOf(answer: readonly Message[]): (string | null)[][] {
  const failure = answer.find(({ tag }) => tag === 'E')
  if (failure) throw new WireError(fieldsOf(failure))
  return answer.filter(({ tag }) => tag === 'D').map(textsOf)
}

/** The connection was refused, or ended, with this FATAL (or with none). */
export class WireError extends Error {
  readonly fields: ErrorFields
  constructor(fields: ErrorFields = {}) {
    super(fields['M'] ?? 'the connection is closed')
    this.fields = fields
  }
}

export class WireClient {
  readonly socket: Socket
  processId = 0
  cancelKey: Buffer = Buffer.alloc(0)
  /** Every message that was not taken yet. */
  readonly #heard: Message[] = []
  #wake: (() => void) | undefined
  #isClosed = false
  readonly #reader = new FrameReader((tag, buffer, start, end) => {
    this.#heard.push({
      tag: String.fromCharCode(tag),
      body: Buffer.from(buffer.subarray(start + 5, end)),
    })
  })

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', (chunk) => {
      this.#reader.push(chunk)
      this.#wake?.()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#isClosed = true
      this.#wake?.()
    })
  }

  /** Logs in. @throws WireError with the FATAL */
  static async open(address: WireAddress): Promise<WireClient> {
    const { localAddress } = address
    const client = new WireClient(
      connect({ port: address.port, host: '127.0.0.1', ...(localAddress ? { localAddress } : {}) }),
    )
    await client.#logIn(address)
    return client
  }

  send(...bytes: Buffer[]): void {
    this.socket.write(Buffer.concat(bytes))
  }

  /** The next message. @throws WireError when the connection ends instead, with its FATAL when one came */
  async next(): Promise<Message> {
    for (;;) {
      const message = this.#heard.shift()
      if (message) return message
      if (this.#isClosed) throw new WireError()
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
    }
  }

  /** Messages up to the next ReadyForQuery and with it. @throws WireError when the connection ends before */
  async untilReady(): Promise<Message[]> {
    const messages: Message[] = []
    for (;;) {
      const message = await this.next()
      messages.push(message)
      if (message.tag === 'Z') return messages
      if (message.tag === 'E' && fieldsOf(message)['V'] === 'FATAL')
        throw new WireError(fieldsOf(message))
    }
  }

  /** Sends one request, or several of `syncs` ReadyForQuery, and gives what came for each. */
  async ask(bytes: Buffer | readonly Buffer[], syncs = 1): Promise<Message[][]> {
    this.send(...(Buffer.isBuffer(bytes) ? [bytes] : bytes))
    const answers: Message[][] = []
    while (answers.length < syncs) answers.push(await this.untilReady())
    return answers
  }

  /** Rows of a Query. @throws WireError with the first error's fields */
  async rows(sql: string): Promise<(string | null)[][]> {
    const [answer = []] = await this.ask(say.query(sql))
    return rowsOf(answer)
  }

  /** Resolves when the other side has taken the cancel request and closed its connection. */
  cancel(port: number): Promise<void> {
    const packet = written((writer) =>
      encodeCancelRequest(writer, { processId: this.processId, secret: this.cancelKey }),
    )
    return new Promise((resolve) => {
      // as libpq: it does not close its side, so the end of the connection is the other's word
      const socket = connect(port, '127.0.0.1', () => void socket.write(packet))
      socket.on('error', () => undefined).on('close', () => resolve())
      socket.resume()
    })
  }

  /** Says Terminate; resolves when the connection is closed. */
  async end(): Promise<void> {
    if (this.#isClosed) return
    const closed = new Promise<void>((resolve) => this.socket.once('close', () => resolve()))
    this.socket.end(say.terminate())
    await closed
  }

  async #logIn({ user = 'postgres', database, password, parameters }: WireAddress): Promise<void> {
    const scram = new ScramClient(password ?? '')
    this.send(
      written((writer) =>
        encodeStartupMessage(writer, {
          major: 3,
          minor: 0,
          parameters: new Map([
            ['user', user],
            ['database', database],
            ...Object.entries(parameters ?? {}),
          ]),
        }),
      ),
    )
    for (;;) {
      const message = await this.next()
      if (message.tag === 'E') throw new WireError(fieldsOf(message))
      if (message.tag === 'R') await this.#authenticate(message.body, scram)
      if (message.tag === 'K') {
        const { processId, secret } = decodeBackendKeyData(message.body)
        this.processId = processId
        this.cancelKey = Buffer.from(secret)
      }
      if (message.tag === 'Z') return
    }
  }

  async #authenticate(body: Buffer, scram: ScramClient): Promise<void> {
    const asked = decodeAuthentication(body)
    switch (asked.kind) {
      case 'ok':
        return
      case 'sasl':
        return this.send(
          written((writer) =>
            encodeSaslInitialResponse(writer, {
              mechanism: 'SCRAM-SHA-256',
              response: scram.first(),
            }),
          ),
        )
      case 'saslContinue': {
        const answer = await scram.continue(asked.bytes)
        return this.send(written((writer) => encodeSaslResponse(writer, answer)))
      }
      case 'saslFinal':
        return scram.finish(asked.bytes)
      default:
        throw new Error(`no answer to ${asked.kind}`)
    }
  }
}
