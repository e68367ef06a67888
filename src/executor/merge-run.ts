/**
 * One read on several servers whose rows become one answer by merging: feeds `merge/` with their rows as they come, pauses
 * those who are ahead, and hands the answer's rows to the client. Memory does not grow with the result.
 */
import { type EngineError, engineError, toEngineError } from '../errors/engine-error.js'
import { RowMerge } from '../merge/row-merge.js'
import { columnsOf, visibleDescription } from '../merge/rows/columns.js'
import type { MergeProgram } from '../plan/merge-program.js'
import type { ServerReceiver } from '../server/server-connection.js'
import { noteShard, serverErrorOf } from '../server/server-error.js'
import type { FieldDescription } from '../wire/backend-messages.js'
import { backend } from '../wire/tags.js'
import type { FanOutPart } from './fan-out.js'
import type { RelayOutput } from './relay.js'
import { RowBlocks } from './row-blocks.js'

/** So much of what nobody wants any more is read on; then the servers are told to stop. */
const UNWANTED_BYTES = 1_048_576

export interface MergeOutcome {
  /** The first error by time, with the shard in its detail. */
  readonly error?: EngineError
  /** Rows that the client has. */
  readonly rows: number
  /** The client has as many rows as it asked for. */
  readonly isSuspended: boolean
  readonly lost: readonly number[]
}

export interface MergeRunOptions {
  readonly program: MergeProgram
  /** Most rows that the client asks for; 0: all. */
  readonly rowLimit: number
  /** The first part describes the client's own statement before the rows. */
  readonly describes: boolean
  listens(): boolean
  /** Hears ParameterStatus of the first part. */
  parameterStatus(buffer: Buffer, start: number, end: number): void
  /**
   * The first columns came: what the client hears before the rows. `statement`: the answer to Describe of the statement;
   * `columns`: RowDescription without the hidden columns.
   */
  opened(statement: Buffer, columns: Buffer): void
  /** The servers may be told to stop: an error came, or no more rows are wanted and many still come. True: they were. */
  stop(why: 'error' | 'enough'): boolean
  /** Called once, when every server is ready or lost; nothing of CommandComplete, error and ReadyForQuery was sent. */
  done(outcome: MergeOutcome): void
}

const nothing = Buffer.alloc(0)

export class MergeRun {
  readonly #parts: MergedPart[]
  readonly #output: RelayOutput
  readonly #options: MergeRunOptions
  readonly #blocks: RowBlocks
  #merge: RowMerge | undefined
  #columns: readonly FieldDescription[] | undefined
  #statement: Buffer = nothing
  #error: EngineError | undefined
  #left: number
  #hasStarted = false
  #unwanted = 0
  /** Told to stop although nothing was wrong: their errors are of our making. */
  #isStopped = false
  readonly #lost: number[] = []

  constructor(parts: readonly FanOutPart[], output: RelayOutput, options: MergeRunOptions) {
    this.#output = output
    this.#blocks = new RowBlocks(output)
    this.#options = options
    this.#left = parts.length
    this.#parts = parts.map((part, index) => new MergedPart(this, part, index, options.describes))
  }

  /** Sends to every server; what the first says of the statement comes before all that the others say. */
  start(): void {
    this.#parts[0]?.start()
    if (!this.#options.describes) this.startOthers()
  }

  /** The first has described the statement, or failed at it. */
  startOthers(): void {
    if (this.#hasStarted) return
    this.#hasStarted = true
    for (const part of this.#parts.slice(1)) part.start()
  }

  /** The client has read what was waiting. */
  clientDrained(): void {
    for (const part of this.#parts) part.clientDrained()
  }

  /** Columns of one part: the first bring the merge about, the others must be the same. */
  described(part: MergedPart, buffer: Buffer, start: number, end: number): void {
    if (this.#error) return
    const columns = columnsOf(buffer, start, end)
    if (this.#columns) {
      if (sameColumns(this.#columns, columns)) return
      const shard = part.shard
      const first = this.#parts[0]!.shard
      return this.fail(engineError('SESSION_SHARDS_DISAGREE', { shard, first }), part)
    }
    try {
      this.#merge = this.#open(columns)
      this.#columns = columns
      const visible = visibleOf(this.#options.program, columns)
      const description =
        visible < columns.length
          ? visibleDescription(buffer, start, end, visible)
          : Buffer.from(buffer.subarray(start, end))
      this.#options.opened(this.#statement, description)
      if (this.#options.rowLimit > 0) this.#merge.allow(this.#options.rowLimit)
    } catch (error) {
      this.fail(toEngineError(error))
    }
  }

  #open(columns: readonly FieldDescription[]): RowMerge {
    const { program } = this.#options
    return new RowMerge({
      program: { ...program, visible: visibleOf(program, columns) },
      fields: columns,
      shards: this.#parts.length,
      sink: this.#blocks,
      pause: (index) => this.#parts[index]!.pause('merge'),
      resume: (index) => this.#parts[index]!.resume('merge'),
    })
  }

  /** The lead's answer to Describe of the client's statement. */
  statementDescribed(buffer: Buffer, start: number, end: number): void {
    this.#statement = Buffer.concat([this.#statement, buffer.subarray(start, end)])
  }

  rows(part: MergedPart, buffer: Buffer, start: number, end: number): void {
    const merge = this.#merge
    if (this.#error || !merge || merge.isComplete || merge.isSuspended) {
      return this.#drop(end - start)
    }
    this.#attempt(() => merge.rows(part.index, buffer, start, end))
  }

  completed(part: MergedPart): void {
    const merge = this.#merge
    if (!this.#error && merge) this.#attempt(() => merge.ended(part.index))
  }

  #attempt(step: () => void): void {
    try {
      step()
    } catch (error) {
      this.fail(toEngineError(error))
    }
    // nobody needs to wait for those who are ahead any more
    if (this.#isOver) for (const part of this.#parts) part.resume('merge')
  }

  get #isOver(): boolean {
    const merge = this.#merge
    return this.#error !== undefined || merge?.isComplete === true || merge?.isSuspended === true
  }

  #drop(bytes: number): void {
    const before = this.#unwanted
    this.#unwanted += bytes
    const crossed = before < UNWANTED_BYTES && this.#unwanted >= UNWANTED_BYTES
    if (crossed && !this.#error) this.#isStopped = this.#options.stop('enough')
  }

  notice(part: MergedPart, tag: number, buffer: Buffer, start: number, end: number): void {
    if (tag === backend.notificationResponse && !this.#options.listens()) return
    if (part.index !== 0 || this.#error) return
    this.#blocks.give()
    this.#output.forward(buffer, start, end)
  }

  parameterStatus(part: MergedPart, buffer: Buffer, start: number, end: number): void {
    if (part.index === 0) this.#options.parameterStatus(buffer, start, end)
  }

  /** An error of a part; without one it is ours. */
  fail(error: EngineError, part?: MergedPart): void {
    this.startOthers()
    if (this.#error || (this.#isStopped && part)) return
    this.#error = error
    if (part) noteShard(error, part.shard, this.#parts.length)
    for (const one of this.#parts) one.resume('merge')
    this.#options.stop('error')
  }

  lost(part: MergedPart, error: EngineError): void {
    this.#lost.push(part.shard)
    this.fail(error, part)
    this.ended()
  }

  ended(): void {
    this.startOthers()
    if (--this.#left > 0) return
    this.#blocks.give()
    const merge = this.#merge
    this.#options.done({
      lost: this.#lost,
      rows: merge?.sent ?? 0,
      isSuspended: this.#options.rowLimit > 0 && merge?.isSuspended === true,
      ...(this.#error ? { error: this.#error } : {}),
    })
  }

  flush(): boolean {
    this.#blocks.give()
    return this.#output.flush()
  }
}

class MergedPart implements ServerReceiver {
  readonly wholeRows = true
  readonly shard: number
  readonly index: number
  readonly #whole: MergeRun
  readonly #part: FanOutPart
  readonly #pauses = new Set<'merge' | 'client'>()
  #preludeLeft: number
  /** RowDescription or NoData of the client's statement is still to come. */
  #describes: boolean
  #isOver = false

  constructor(whole: MergeRun, part: FanOutPart, index: number, describes: boolean) {
    this.#whole = whole
    this.#part = part
    this.index = index
    this.shard = part.shard
    this.#preludeLeft = part.preludeReadies
    this.#describes = describes && index === 0
  }

  start(): void {
    const { server, bytes, preludeReadies } = this.#part
    server.receiver = this
    server.write(bytes, preludeReadies + 1)
  }

  pause(why: 'merge' | 'client'): void {
    if (this.#isOver || this.#part.server.closed) return
    if (this.#pauses.size === 0) this.#part.server.socket.pause()
    this.#pauses.add(why)
  }

  resume(why: 'merge' | 'client'): void {
    if (this.#pauses.delete(why) && this.#pauses.size === 0) this.#part.server.socket.resume()
  }

  clientDrained(): void {
    this.resume('client')
  }

  rows(buffer: Buffer, start: number, end: number): void {
    if (this.#preludeLeft === 0) this.#whole.rows(this, buffer, start, end)
  }

  endOfRead(): void {
    if (!this.#whole.flush()) this.pause('client')
  }

  serverLost(error: EngineError): void {
    if (this.#isOver) return
    this.#isOver = true
    this.#whole.lost(this, error)
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    const server = this.#part.server
    if (tag === backend.readyForQuery) return this.#ready(buffer[start + 5] as number)
    if (tag === backend.errorResponse) {
      return this.#whole.fail(serverErrorOf(buffer, start, end), this)
    }
    if (tag === backend.parameterStatus) server.parameterStatus(buffer, start, end)
    if (this.#preludeLeft === 0) this.#own(tag, buffer, start, end)
  }

  #ready(status: number): void {
    this.#part.server.ready(status)
    if (this.#preludeLeft > 0) {
      if (--this.#preludeLeft === 0) this.#part.preludeDone?.()
      return
    }
    this.#isOver = true
    this.#whole.ended()
  }

  #own(tag: number, buffer: Buffer, start: number, end: number): void {
    switch (tag) {
      case backend.parameterStatus:
        return this.#whole.parameterStatus(this, buffer, start, end)
      case backend.parameterDescription:
        return this.#whole.statementDescribed(buffer, start, end)
      case backend.rowDescription:
      case backend.noData:
        return this.#described(buffer, start, end)
      case backend.commandComplete:
        return this.#whole.completed(this)
      case backend.noticeResponse:
      case backend.notificationResponse:
        return this.#whole.notice(this, tag, buffer, start, end)
    }
  }

  #described(buffer: Buffer, start: number, end: number): void {
    if (!this.#describes) return this.#whole.described(this, buffer, start, end)
    this.#describes = false
    this.#whole.statementDescribed(buffer, start, end)
    this.#whole.startOthers()
  }
}

const visibleOf = ({ visible }: MergeProgram, columns: readonly FieldDescription[]): number =>
  visible < 0 ? columns.length : visible

/** Names, types and formats; OIDs of tables differ between shards and do not count. */
const sameColumns = (a: readonly FieldDescription[], b: readonly FieldDescription[]): boolean =>
  a.length === b.length &&
  a.every(({ name, typeOid, format }, at) => {
    const other = b[at]!
    return name === other.name && typeOid === other.typeOid && format === other.format
  })
