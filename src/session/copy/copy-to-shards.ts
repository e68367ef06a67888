/**
 * COPY FROM STDIN of a sharded or reference table: every row to its shard, all or nothing over the shards.
 * The statement runs in a transaction on each; rows are split by copy/copy-in-router.ts (its header has the protocol);
 * the commit follows `cross_shard_writes`.
 */
import { CopyInRouter, copyDataHeader } from '../../copy/copy-in-router.js'
import { copyWhere } from '../../copy/copy-row.js'
import { firstFault, type LineFault, ownFault } from '../../copy/line-map.js'
import { type EngineError, engineError, toEngineError } from '../../errors/engine-error.js'
import type { ByteSocket } from '../../net/byte-socket.js'
import type { Plan, PlannedStatement } from '../../plan/plan.js'
import { queryFrame } from '../../server/server-connection.js'
import { listShards } from '../../sharding/shard-set.js'
import { frontend } from '../../wire/tags.js'
import { completeFrame, errorFrame } from '../answers.js'
import type { CopyTarget } from '../environment.js'
import { commitOverShards, rollBackAll } from '../requests/over-shards/commit-over-shards.js'
import { checkOpenKeys } from '../requests/request-route.js'
import type { SessionCore } from '../session-core.js'
import { unquote } from '../sql-literal.js'
import type { HeldServer } from '../state/held-servers.js'
import type { CopyIn } from './copy-in.js'
import { CopyShard, type CopyShardResult } from './copy-shard.js'

export interface ShardedCopy {
  readonly statement: PlannedStatement
  readonly plan: Plan
  readonly text: string
}

export class CopyToShards implements CopyIn {
  isOver = false
  readonly #core: SessionCore
  readonly #client: ByteSocket
  readonly #shards: CopyShard[]
  readonly #helds: HeldServer[]
  readonly #router: CopyInRouter
  readonly #isImplicit: boolean
  readonly #isExtended: boolean
  readonly #table: string
  #paused = new Set<number>()
  #error: EngineError | undefined
  #dataEnded = false
  /** The answer is on its way. */
  #isEnding = false
  /** The answer has been given; in the extended protocol ReadyForQuery waits for Sync. */
  #isAnswered = false
  #hasSync = false
  #isStopped = false

  /** Starts the COPY on every shard; resolves when all take data and the client was told so. */
  static async start(
    core: SessionCore,
    client: ByteSocket,
    copy: ShardedCopy,
  ): Promise<CopyToShards> {
    const target = targetOf(core, copy.statement)
    const numbers = listShards(copy.plan.target, core.access.planner.shardCount)
    checkOpenKeys(core)
    if (numbers.length > 1 && core.access.crossShardWrites === 'error') {
      throw engineError('SESSION_COPY_SHARDS', {
        table: copy.statement.effects.copy?.table?.name ?? '',
      })
    }
    const helds: HeldServer[] = []
    for (const number of numbers) helds.push(await core.held.acquire(number, 'primary'))
    const isImplicit = !core.transaction.isExplicit
    let shards: CopyShard[] = []
    try {
      await Promise.all(helds.map((held) => core.held.joinNow(held, core.transaction)))
      const sql = queryFrame(copy.text.slice(copy.statement.start, copy.statement.end))
      shards = helds.map((held) => new CopyShard(held, sql))
      for (const one of await Promise.allSettled(shards.map((shard) => shard.opened)))
        if (one.status === 'rejected') throw one.reason
      return new CopyToShards(core, client, copy, { helds, shards, target, isImplicit })
    } catch (error) {
      // Those that take data hear nothing else before the COPY is over.
      for (const shard of shards) shard.fail()
      await Promise.all(shards.map((shard) => shard.result))
      await rollBack(core, helds, isImplicit)
      throw error
    }
  }

  private constructor(
    core: SessionCore,
    client: ByteSocket,
    copy: ShardedCopy,
    parts: { helds: HeldServer[]; shards: CopyShard[]; target: CopyTarget; isImplicit: boolean },
  ) {
    this.#core = core
    this.#client = client
    this.#helds = parts.helds
    this.#shards = parts.shards
    this.#isImplicit = parts.isImplicit
    this.#isExtended = core.running?.protocol === 'extended'
    this.#table = copy.statement.effects.copy?.table?.name ?? ''
    this.#router = this.#makeRouter(copy, parts.target)
    for (const shard of this.#shards) {
      shard.onDrained = () => this.#drained(shard.number)
      shard.onFailed = () => this.#shardFailed()
      shard.onNotice = (frame) => core.output.append(Buffer.from(frame))
    }
    core.output.append(this.#shards[0]?.response as Buffer)
    core.output.flush()
  }

  #makeRouter(copy: ShardedCopy, target: CopyTarget): CopyInRouter {
    const effect = copy.statement.effects.copy
    const encoding = this.#core.transaction.effective.values.get('client_encoding')
    const server = this.#helds[0]?.server
    return new CopyInRouter({
      effect: effect as NonNullable<typeof effect>,
      table: effect?.table?.name ?? '',
      columns: effect?.columns ?? target.columns,
      shardCount: this.#core.access.planner.shardCount,
      ...(target.placer === undefined ? {} : { placer: target.placer }),
      ...(target.placesDefault === undefined ? {} : { placesDefault: target.placesDefault }),
      ...(encoding === undefined ? {} : { clientEncoding: unquote(encoding) }),
      serverMajor: Math.floor((server?.serverVersion ?? 150_000) / 10_000),
      onBatch: (number, bytes) => this.#batch(number, bytes),
    })
  }

  frame(tag: number, buffer: Buffer, start: number, end: number): void {
    if (tag === frontend.sync) return this.#sync()
    if (tag === frontend.flush || this.#dataEnded) return
    if (tag === frontend.copyData) return this.#data(buffer.subarray(start + 5, end))
    this.#dataEnded = true
    if (!this.#isExtended) this.isOver = true
    if (tag === frontend.copyDone) return this.#dataDone()
    const reason =
      tag === frontend.copyFail
        ? `COPY from stdin failed: ${buffer.toString('utf8', start + 5, end - 1)}`
        : `unexpected message type 0x${tag.toString(16)} during COPY from stdin`
    const where = copyWhere(this.#table, this.#router.line + 1)
    this.#fail(engineError('SESSION_COPY_FAILED', { reason }, { where }), 'fail')
  }

  /** Never: errors of shards are handled here. */
  failed(): boolean {
    return !this.isOver
  }

  stop(): void {
    this.isOver = true
    if (this.#isAnswered) return
    this.#isStopped = true
    for (const shard of this.#shards) shard.abandon()
  }

  #data(body: Buffer): void {
    if (this.#isEnding) return
    try {
      this.#router.push(body)
    } catch (error) {
      this.#fail(toEngineError(error), 'done')
    }
  }

  #batch(number: number, bytes: Buffer): void {
    const shard = this.#shards.find((one) => one.number === number)
    if (!shard) return
    if (shard.send(copyDataHeader(bytes), bytes)) return
    this.#paused.add(number)
    this.#client.pause()
  }

  #drained(number: number): void {
    this.#paused.delete(number)
    if (this.#paused.size === 0) this.#client.resume()
  }

  #dataDone(): void {
    if (this.#isEnding) return
    try {
      this.#router.finish()
    } catch (error) {
      return this.#fail(toEngineError(error), 'done')
    }
    for (const shard of this.#shards) shard.done()
    void this.#finish()
  }

  /** A shard has failed while data flows; what the client sends further is swallowed. */
  #shardFailed(): void {
    if (!this.#isEnding) this.#fail(undefined, 'fail')
  }

  /** `done`: the rows before our own error have been handed out, and the servers are asked about them first. */
  #fail(error: EngineError | undefined, how: 'done' | 'fail'): void {
    if (this.#isEnding) return
    this.#isEnding = true
    this.#error = error
    // An earlier fault may be among the rows that are still here.
    if (how === 'fail') this.#router.flush()
    for (const shard of this.#shards) {
      // A row that ends in a carriage return is not complete to a server that has seen no other.
      if (how === 'done' || this.#router.endsInReturn) shard.done()
      else shard.fail()
    }
    this.#paused.clear()
    this.#client.resume()
    void this.#finish()
  }

  async #finish(): Promise<void> {
    this.#isEnding = true
    const results = await Promise.all(this.#shards.map((shard) => shard.result))
    if (this.#isStopped) return
    const error = this.#firstError(results)
    try {
      if (error) await this.#undo(error)
      else await this.#commit(results.map((one) => one.rows))
    } catch (failure) {
      await this.#undo(toEngineError(failure))
    }
    this.#isAnswered = true
    if (!this.#isExtended || this.#hasSync) this.#end()
    else this.#core.output.flush()
  }

  /** What one server would have said. */
  #firstError(results: readonly CopyShardResult[]): EngineError | undefined {
    const faults: LineFault<EngineError>[] = results.flatMap(({ error }, index) =>
      error ? [this.#placed(error, this.#shards[index]?.number ?? 0)] : [],
    )
    if (this.#error) faults.push(ownFault(this.#error))
    return firstFault(faults)?.error
  }

  /** A server counts only the lines of its shard. */
  #placed(error: EngineError, shard: number): LineFault<EngineError> {
    const fields = 'fields' in error ? (error.fields as Record<string, string>) : {}
    if (!fields['W']) return { error, line: undefined }
    const { where, line } = this.#router.placeOf(fields['W'], shard, this.#shards.length)
    fields['W'] = where
    return { error, line }
  }

  async #commit(rows: number[]): Promise<void> {
    const core = this.#core
    for (const [index, held] of this.#helds.entries()) if ((rows[index] ?? 0) > 0) held.wrote = true
    if (this.#isImplicit) {
      await commitOverShards(core, this.#helds)
      core.figures.transactions++
      core.figures.queries++
    }
    core.output.append(completeFrame(`COPY ${this.#router.tagRows(rows)}`))
  }

  async #undo(error: EngineError): Promise<void> {
    const core = this.#core
    core.figures.errors++
    await rollBack(core, this.#helds, this.#isImplicit)
    core.output.append(errorFrame(error, 'ERROR'))
  }

  /** PostgreSQL ignores Sync while it takes data. */
  #sync(): void {
    if (!this.#isExtended || (!this.#dataEnded && !this.#isEnding)) return
    this.#hasSync = true
    this.isOver = true
    if (this.#isAnswered) this.#end()
  }

  #end(): void {
    this.isOver = true
    this.#client.resume()
    this.#core.complete()
  }
}

function targetOf(core: SessionCore, statement: PlannedStatement): CopyTarget {
  const table = statement.effects.copy?.table
  const target = table && core.access.copyTarget(table, core.routeContext().searchPath)
  if (target) return target
  throw engineError('SESSION_COPY_UNKNOWN', { table: table?.name ?? '' })
}

async function rollBack(
  core: SessionCore,
  helds: HeldServer[],
  isImplicit: boolean,
): Promise<void> {
  if (isImplicit) await rollBackAll(core, helds)
  else core.transaction.fail()
}
