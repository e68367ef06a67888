/**
 * One request on several servers at once, and one answer: rows are concatenated as they come, whole rows only, and
 * the counts of the command tags are added. Or, for statements that change no rows, one server's answer stands for all.
 * Never decides which servers. Memory does not grow with the result: a slow client pauses the servers.
 */
import { type EngineError, engineError } from '../errors/engine-error.js'
import { readCString } from '../server/read-cstring.js'
import type { ServerConnection, ServerReceiver } from '../server/server-connection.js'
import { noteShard, serverErrorOf } from '../server/server-error.js'
import { backend } from '../wire/tags.js'
import { CopyOutMerge } from './copy-out-merge.js'
import type { RelayOutput } from './relay.js'

export interface FanOutPart {
  readonly shard: number
  readonly server: ServerConnection
  /** All that the server is to hear, and the ReadyForQuery that belong to settings and BEGIN. */
  readonly bytes: Buffer
  readonly preludeReadies: number
  /** Called when the prelude was answered without error. */
  readonly preludeDone?: () => void
}

export interface FanOutOutcome {
  /** The first error by time, with the shard in its detail. */
  readonly error?: EngineError
  /** The command tag with the counts of all shards; undefined when the request executed nothing. */
  readonly tag?: string
  /** CloseComplete that follow the tag. */
  readonly closes: number
  /** Servers lost on the way. */
  readonly lost: readonly number[]
}

export interface FanOutOptions {
  /** `rows`: every server's rows count. `same`: only those of the first part. */
  readonly mode: 'rows' | 'same'
  /** ParseComplete is not the client's. */
  readonly hidesParse?: boolean
  /** With COPY TO: each server sends a header line first. */
  readonly copyHeader?: boolean
  /** True while the client listens: no other client's notifications may reach it. */
  listens(): boolean
  /** Hears ParameterStatus of the first part. */
  parameterStatus(buffer: Buffer, start: number, end: number): void
  /** Called once, after every server is ready or lost; nothing of CommandComplete, error and ReadyForQuery was sent. */
  done(outcome: FanOutOutcome): void
  /** The first error came: the others may be told to stop. */
  failed?(): void
}

export class FanOut {
  readonly #parts: Part[]
  readonly #output: RelayOutput
  readonly #options: FanOutOptions
  #columns: string | undefined
  #error: EngineError | undefined
  #tagWords: string | undefined
  #count = 0n
  #counted = false
  #left: number
  /** How much of what stands before rows the client has. */
  #opened = 0
  #closes = 0
  readonly #lost: number[] = []
  readonly #copyOut: CopyOutMerge | undefined

  constructor(parts: readonly FanOutPart[], output: RelayOutput, options: FanOutOptions) {
    this.#output = output
    this.#options = options
    this.#left = parts.length
    this.#copyOut =
      options.mode === 'rows'
        ? new CopyOutMerge(output, options.copyHeader === true, parts.length)
        : undefined
    this.#parts = parts.map((part, index) => new Part(this, part, index === 0))
  }

  /** Sends to every server. */
  start(): void {
    for (const part of this.#parts) part.start()
  }

  /** The client has read what was waiting. */
  clientDrained(): void {
    for (const part of this.#parts) part.resume()
  }

  /** True for what the client shall see of this part. */
  shows(isLead: boolean): boolean {
    return this.#error === undefined && (isLead || this.#options.mode === 'rows')
  }

  rows(part: Part, buffer: Buffer, start: number, end: number): void {
    if (!this.shows(part.isLead)) return
    if (this.#copyOut !== undefined && buffer[start] === backend.copyData)
      this.#copyOut.rows(part, buffer, start, end)
    else this.#output.forward(buffer, start, end)
  }

  /** RowDescription: the first is sent, the others must name the same columns. */
  described(part: Part, buffer: Buffer, start: number, end: number): void {
    const columns = columnsOf(buffer, start, end)
    if (part.isLead || this.#columns === undefined) {
      if (this.#columns === undefined && !this.#error) this.#output.forward(buffer, start, end)
      this.#columns ??= columns
    }
    if (columns !== this.#columns) {
      this.fail(
        engineError('SESSION_SHARDS_DISAGREE', {
          shard: part.shard,
          first: this.#parts[0]?.shard ?? 0,
        }),
        part.shard,
      )
    }
  }

  lead(part: Part, buffer: Buffer, start: number, end: number): void {
    const tag = buffer[start] as number
    if (tag === backend.notificationResponse && !this.#options.listens()) return
    if (this.#copyOut !== undefined && this.#copyFrame(this.#copyOut, tag, buffer, start, end))
      return
    if (this.#options.hidesParse && tag === backend.parseComplete) return
    if (opening.has(tag)) {
      // the first of any part: rows of another may not come before it
      if (++part.opened > this.#opened && !this.#error) {
        this.#opened = part.opened
        this.#output.forward(buffer, start, end)
      }
      return
    }
    if (part.isLead && !this.#error) this.#leadFrame(part, tag, buffer, start, end)
  }

  #leadFrame(part: Part, tag: number, buffer: Buffer, start: number, end: number): void {
    // what a client closes behind its Execute is closed behind CommandComplete, which comes with `done`
    if (tag === backend.closeComplete && part.hasCompleted) this.#closes++
    else this.#output.forward(buffer, start, end)
  }

  /** Begin and end of COPY TO are the client's once. True: it was one of them. */
  #copyFrame(
    copyOut: CopyOutMerge,
    tag: number,
    buffer: Buffer,
    start: number,
    end: number,
  ): boolean {
    if (tag !== backend.copyOutResponse && tag !== backend.copyDone) return false
    if (this.#error) return true
    if (tag === backend.copyDone) copyOut.done(buffer, start, end)
    else copyOut.opened(buffer, start, end)
    return true
  }

  parameterStatus(part: Part, buffer: Buffer, start: number, end: number): void {
    if (part.isLead) this.#options.parameterStatus(buffer, start, end)
  }

  completed(part: Part, tag: string): void {
    part.hasCompleted = true
    const match = /^(.*?) ?(\d+)?$/.exec(tag)
    if (part.isLead || this.#tagWords === undefined) this.#tagWords = match?.[1] ?? tag
    if (match?.[2] === undefined) return
    this.#counted = true
    if (this.#options.mode === 'rows') this.#count += BigInt(match[2])
    else if (part.isLead) this.#count = BigInt(match[2])
  }

  fail(error: EngineError, shard: number): void {
    if (this.#error) return
    this.#error = error
    noteShard(error, shard, this.#parts.length)
    this.#options.failed?.()
  }

  lost(part: Part, error: EngineError): void {
    this.#lost.push(part.shard)
    this.fail(error, part.shard)
    this.ended()
  }

  ended(): void {
    if (--this.#left > 0) return
    const tag = this.#tagWords
    const count = this.#counted ? ` ${this.#count}` : ''
    this.#options.done({
      lost: this.#lost,
      closes: this.#closes,
      ...(this.#error ? { error: this.#error } : {}),
      ...(tag === undefined ? {} : { tag: `${tag}${count}` }),
    })
  }

  flush(): boolean {
    return this.#output.flush()
  }
}

class Part implements ServerReceiver {
  readonly wholeRows = true
  readonly shard: number
  readonly isLead: boolean
  /** How much of what stands before rows came. */
  opened = 0
  hasCompleted = false
  /** The header or signature of its COPY TO came. */
  hasBegun = false
  readonly #whole: FanOut
  readonly #part: FanOutPart
  #preludeLeft: number
  #paused = false

  constructor(whole: FanOut, part: FanOutPart, isLead: boolean) {
    this.#whole = whole
    this.#part = part
    this.shard = part.shard
    this.isLead = isLead
    this.#preludeLeft = part.preludeReadies
  }

  start(): void {
    const { server, bytes, preludeReadies } = this.#part
    server.receiver = this
    server.write(bytes, preludeReadies + 1)
  }

  resume(): void {
    if (!this.#paused) return
    this.#paused = false
    this.#part.server.socket.resume()
  }

  rows(buffer: Buffer, start: number, end: number): void {
    if (this.#preludeLeft === 0) this.#whole.rows(this, buffer, start, end)
  }

  endOfRead(): void {
    if (this.#whole.flush() || this.#paused || this.#part.server.closed) return
    this.#paused = true
    this.#part.server.socket.pause()
  }

  serverLost(error: EngineError): void {
    this.#whole.lost(this, error)
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    const server = this.#part.server
    if (tag === backend.readyForQuery) {
      server.ready(buffer[start + 5] as number)
      if (this.#preludeLeft === 0) return this.#whole.ended()
      if (--this.#preludeLeft === 0) this.#part.preludeDone?.()
      return
    }
    if (tag === backend.errorResponse) {
      return this.#whole.fail(serverErrorOf(buffer, start, end), this.shard)
    }
    if (tag === backend.parameterStatus) server.parameterStatus(buffer, start, end)
    if (this.#preludeLeft > 0) return
    this.#own(tag, buffer, start, end)
  }

  #own(tag: number, buffer: Buffer, start: number, end: number): void {
    switch (tag) {
      case backend.parameterStatus:
        return this.#whole.parameterStatus(this, buffer, start, end)
      case backend.rowDescription:
        return this.#whole.described(this, buffer, start, end)
      case backend.commandComplete:
        return this.#whole.completed(this, readCString(buffer, start + 5, end).text)
      default:
        return this.#whole.lead(this, buffer, start, end)
    }
  }
}

/** What stands before rows: all parts say it alike, and in the same order. */
const opening: ReadonlySet<number> = new Set([
  backend.parseComplete,
  backend.bindComplete,
  backend.parameterDescription,
  backend.noData,
])

/** Names and types of a RowDescription; table OIDs differ between shards and do not count. */
function columnsOf(buffer: Buffer, start: number, end: number): string {
  const count = buffer.readUInt16BE(start + 5)
  let at = start + 7
  let text = ''
  for (let i = 0; i < count; i++) {
    const name = readCString(buffer, at, end)
    text += `${name.text}:${buffer.readUInt32BE(name.next + 6)}:${buffer.readUInt16BE(name.next + 16)},`
    at = name.next + 18
  }
  return text
}
