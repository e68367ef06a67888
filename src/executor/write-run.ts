/**
 * A write on several servers at once. Nothing of an answer is shown before all have completed: PostgreSQL, too, keeps the
 * rows of RETURNING until a statement has done its work. Never decides which servers, and commits nothing.
 */
import { type EngineError, engineError } from '../errors/engine-error.js'
import { readCString } from '../server/read-cstring.js'
import type { ServerConnection, ServerReceiver } from '../server/server-connection.js'
import { noteShard, serverErrorOf } from '../server/server-error.js'
import { backend } from '../wire/tags.js'

export interface WritePart {
  readonly shard: number
  readonly server: ServerConnection
  /** All that the server is to hear. */
  readonly bytes: Buffer
  /** ReadyForQuery that belong to settings and BEGIN. */
  readonly preludeReadies: number
  readonly preludeDone?: () => void
}

export interface WriteReply {
  readonly shard: number
  /** DataRow frames. */
  readonly rows: readonly Buffer[]
  /** The last RowDescription or NoData. */
  readonly columns: Buffer | undefined
  /** ParameterDescription and what followed it: the answer to Describe of the statement. */
  readonly statement: Buffer
  readonly tag: string
}

export interface WriteOutcome {
  /** In the order of the parts. */
  readonly replies: readonly WriteReply[]
  /** The first error by time. */
  readonly error?: EngineError
  readonly lost: readonly number[]
}

export interface WriteOptions {
  /** How many shards the statement concerns, for the detail of an error. */
  readonly of: number
  /** The first error came: the others may be told to stop. */
  failed?(): void
  /** A NoticeResponse; borrowed. */
  notice(buffer: Buffer, start: number, end: number): void
}

/** Rows of RETURNING that are held at once, of all servers. */
const MOST_BYTES = 67_108_864

/** Resolves when every server is ready again or lost. */
export function runWrites(
  parts: readonly WritePart[],
  options: WriteOptions,
): Promise<WriteOutcome> {
  return new Promise((resolve) => {
    const run = new WriteRun(parts, options, resolve)
    run.start()
  })
}

class WriteRun {
  readonly #parts: readonly Part[]
  readonly #options: WriteOptions
  readonly #done: (outcome: WriteOutcome) => void
  readonly #lost: number[] = []
  #left: number
  #bytes = 0
  #error: EngineError | undefined

  constructor(
    parts: readonly WritePart[],
    options: WriteOptions,
    done: (outcome: WriteOutcome) => void,
  ) {
    this.#parts = parts.map((part) => new Part(this, part))
    this.#options = options
    this.#done = done
    this.#left = parts.length
  }

  start(): void {
    for (const part of this.#parts) part.start()
  }

  /** False: too much, nothing more is kept. */
  holds(bytes: number): boolean {
    this.#bytes += bytes
    if (this.#error) return false
    if (this.#bytes <= MOST_BYTES) return true
    this.#fail(engineError('WRITE_RETURNING_SIZE', { limit: MOST_BYTES }))
    return false
  }

  notice(buffer: Buffer, start: number, end: number): void {
    if (!this.#error) this.#options.notice(buffer, start, end)
  }

  failed(error: EngineError, shard: number): void {
    if (this.#error) return
    if (this.#options.of > 1) noteShard(error, shard, this.#options.of)
    this.#fail(error)
  }

  #fail(error: EngineError): void {
    this.#error ??= error
    this.#options.failed?.()
  }

  lost(error: EngineError, shard: number): void {
    this.#lost.push(shard)
    this.failed(error, shard)
    this.ended()
  }

  ended(): void {
    if (--this.#left > 0) return
    this.#done({
      replies: this.#parts.map((part) => part.reply()),
      lost: this.#lost,
      ...(this.#error ? { error: this.#error } : {}),
    })
  }
}

class Part implements ServerReceiver {
  readonly wholeRows = true
  readonly #run: WriteRun
  readonly #part: WritePart
  readonly #rows: Buffer[] = []
  readonly #statement: Buffer[] = []
  #columns: Buffer | undefined
  #describesStatement = false
  #tag = ''
  #preludeLeft: number

  constructor(run: WriteRun, part: WritePart) {
    this.#run = run
    this.#part = part
    this.#preludeLeft = part.preludeReadies
  }

  start(): void {
    const { server, bytes, preludeReadies } = this.#part
    server.receiver = this
    server.write(bytes, preludeReadies + 1)
  }

  reply(): WriteReply {
    return {
      shard: this.#part.shard,
      rows: this.#rows,
      columns: this.#columns,
      statement: Buffer.concat(this.#statement),
      tag: this.#tag,
    }
  }

  rows(buffer: Buffer, start: number, end: number): void {
    if (this.#preludeLeft > 0 || !this.#run.holds(end - start)) return
    const own = Buffer.from(buffer.subarray(start, end))
    for (let at = 0; at < own.length; ) {
      const next = at + 1 + own.readInt32BE(at + 1)
      if (own[at] === backend.dataRow) this.#rows.push(own.subarray(at, next))
      at = next
    }
  }

  endOfRead(): void {
    // nothing is passed on before the end
  }

  serverLost(error: EngineError): void {
    this.#run.lost(error, this.#part.shard)
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    const { server, shard } = this.#part
    switch (tag) {
      case backend.readyForQuery:
        server.ready(buffer[start + 5] as number)
        if (this.#preludeLeft === 0) this.#run.ended()
        else if (--this.#preludeLeft === 0) this.#part.preludeDone?.()
        return
      case backend.errorResponse:
        return this.#run.failed(serverErrorOf(buffer, start, end), shard)
      case backend.parameterStatus:
        return server.parameterStatus(buffer, start, end)
      case backend.noticeResponse:
        return this.#run.notice(buffer, start, end)
      default:
        if (this.#preludeLeft === 0) this.#own(tag, buffer, start, end)
    }
  }

  #own(tag: number, buffer: Buffer, start: number, end: number): void {
    const copy = () => Buffer.from(buffer.subarray(start, end))
    if (tag === backend.parameterDescription) {
      this.#describesStatement = true
      this.#statement.push(copy())
    } else if (tag === backend.rowDescription || tag === backend.noData) {
      if (this.#describesStatement) this.#statement.push(copy())
      else this.#columns = copy()
      this.#describesStatement = false
    } else if (tag === backend.commandComplete) {
      this.#tag = readCString(buffer, start + 5, end).text
    }
  }
}
