/** A client of plain frames that writes down all it is told, in a form in which two servers can be compared. */
import { connect, type Socket } from 'node:net'
import {
  decodeCommandComplete,
  decodeDataRow,
  decodeParameterDescription,
  decodeRowDescription,
} from '../../src/wire/backend-messages.js'
import { decodeErrorFields } from '../../src/wire/error-response.js'
import { FrameReader } from '../../src/wire/frame-reader.js'
import { backend } from '../../src/wire/tags.js'

export interface SessionTarget {
  readonly port: number
  readonly database: string
}

/** File, line and routine: where in the source it was, which is ours when the proxy answers. */
const PRINTED = 'SVCMDHPpqWstcdn'

export class SessionClient {
  readonly #socket: Socket
  #heard: string[] = []
  #readies = 0
  #isClosed = false
  #wake: (() => void) | undefined

  private constructor(socket: Socket) {
    this.#socket = socket
    const reader = new FrameReader((tag, buffer, start, end) => {
      this.#heard.push(printed(tag, buffer.subarray(start + 5, end)))
      if (tag === backend.readyForQuery) this.#readies++
    })
    socket.setNoDelay(true)
    socket.on('data', (chunk: Buffer) => {
      reader.push(chunk)
      this.#wake?.()
    })
    socket.on('error', () => undefined)
    socket.on('close', () => {
      this.#isClosed = true
      this.#wake?.()
    })
  }

  /** Resolves with the client and what it was told at login. */
  static async open(
    target: SessionTarget,
    startup: Readonly<Record<string, string>>,
  ): Promise<{ client: SessionClient; welcome: readonly string[] }> {
    const client = new SessionClient(connect(target.port, '127.0.0.1'))
    const parameters = { user: 'postgres', database: target.database, ...startup }
    const words = Object.entries(parameters).flat().join('\0')
    const body = Buffer.from(`\0\x03\0\0${words}\0\0`, 'latin1')
    const size = Buffer.alloc(4)
    size.writeInt32BE(body.length + 4)
    client.#socket.write(Buffer.concat([size, body]))
    const welcome = await client.until(1, 10_000)
    return { client, welcome: welcome.filter((line) => !line.startsWith('K')) }
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** `I`, `T` or `E`. */
  status = 'I'

  send(bytes: Buffer): void {
    this.#socket.write(bytes)
  }

  /** What is heard up to the nth ReadyForQuery, or all of it at the deadline or the end. */
  async until(readies: number, deadlineMs: number): Promise<string[]> {
    const end = performance.now() + deadlineMs
    while (this.#readies < readies && !this.#isClosed) {
      const left = end - performance.now()
      if (left <= 0) {
        this.#heard.push('(nothing more)')
        break
      }
      await this.#something(left)
    }
    if (this.#isClosed) this.#heard.push('(closed)')
    return this.#taken()
  }

  /** For a request whose answers nobody has counted: up to its ReadyForQuery and a while behind. */
  async settled(quietMs: number): Promise<{ heard: string[]; readies: number }> {
    let seen = -1
    while (!this.#isClosed && (this.#readies === 0 || this.#heard.length !== seen)) {
      seen = this.#heard.length
      await this.#something(this.#readies === 0 ? 5000 : quietMs)
      if (this.#readies === 0 && this.#heard.length === seen) break
    }
    const readies = this.#readies
    return { heard: this.#taken(), readies }
  }

  end(): void {
    this.#socket.destroy()
  }

  #something(limitMs: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, limitMs)
      this.#wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }

  #taken(): string[] {
    const heard = this.#heard
    this.#heard = []
    this.#readies = 0
    const last = heard.findLast((line) => line.startsWith('Z'))
    if (last) this.status = last.slice(2)
    return heard
  }
}

function printed(tag: number, body: Buffer): string {
  const letter = String.fromCharCode(tag)
  switch (tag) {
    case backend.errorResponse:
    case backend.noticeResponse: {
      const fields = decodeErrorFields(body)
      const texts = [...PRINTED].flatMap((key) =>
        fields[key] === undefined ? [] : [`${key}=${fields[key]}`],
      )
      return `${letter} ${texts.join(' ')}`
    }
    case backend.rowDescription: {
      const columns = decodeRowDescription(body)
      return `T ${columns.map((one) => `${one.name}:${one.typeOid}:${one.format}`).join(' ')}`
    }
    case backend.dataRow:
      return `D ${decodeDataRow(body)
        .map((value) => value?.toString() ?? 'NULL')
        .join(',')}`
    case backend.parameterDescription:
      return `t ${decodeParameterDescription(body).join(',')}`
    case backend.commandComplete:
      return `C ${decodeCommandComplete(body)}`
    case backend.backendKeyData:
      return 'K'
    case backend.notificationResponse:
      return `A ${body.toString('utf8', 4).replaceAll('\0', ' ').trim()}`
    default:
      return `${letter} ${body.toString('latin1').replaceAll('\0', ' ').trim()}`
  }
}
