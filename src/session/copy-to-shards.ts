/**
 * COPY FROM STDIN of a sharded or reference table: every row to its shard, all or nothing over the shards.
 * The statement runs in a transaction on each; rows are split by copy/copy-in-router.ts (its header has the protocol);
 * the commit follows `cross_shard_writes`.
 */
import { CopyInRouter, copyDataHeader, whereOf } from '../copy/copy-in-router.js'
import { type EngineError, engineError, toEngineError } from '../errors/engine-error.js'
import type { ByteSocket } from '../net/byte-socket.js'
import type { Plan, PlannedStatement } from '../plan/plan.js'
import { queryFrame } from '../server/server-connection.js'
import { listShards } from '../sharding/shard-set.js'
import { frontend } from '../wire/tags.js'
import { completeFrame, errorFrame } from './answers.js'
import { commitOverShards, rollBackAll } from './commit-over-shards.js'
import type { CopyIn } from './copy-in.js'
import { CopyShard } from './copy-shard.js'
import type { CopyTarget } from './environment.js'
import type { HeldServer } from './held-servers.js'
import type { SessionCore } from './session-core.js'
import { unquote } from './sql-literal.js'

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
  #paused = new Set<number>()
  #error: EngineError | undefined
  #clientFailed = false
  #dataEnded = false
  #answered = false

  /** Starts the COPY on every shard; resolves when all take data and the client was told so. */
  static async start(
    core: SessionCore,
    client: ByteSocket,
    copy: ShardedCopy,
  ): Promise<CopyToShards> {
    const target = targetOf(core, copy.statement)
    const numbers = listShards(copy.plan.target, core.access.planner.shardCount)
    if (numbers.length > 1 && core.access.crossShardWrites === 'error') {
      throw engineError('SESSION_COPY_SHARDS', {
        table: copy.statement.effects.copy?.table?.name ?? '',
      })
    }
    const helds: HeldServer[] = []
    for (const number of numbers) helds.push(await core.held.acquire(number, 'primary'))
    const isImplicit = !core.transaction.isExplicit
    try {
      await Promise.all(helds.map((held) => core.held.joinNow(held, core.transaction)))
      const sql = queryFrame(copy.text.slice(copy.statement.start, copy.statement.end))
      const shards = helds.map((held) => new CopyShard(held, sql))
      await Promise.all(shards.map((shard) => shard.opened))
      return new CopyToShards(core, client, copy, { helds, shards, target, isImplicit })
    } catch (error) {
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
    this.#router = this.#makeRouter(copy, parts.target)
    for (const shard of this.#shards) {
      shard.onDrained = () => this.#drained(shard.number)
      shard.onFailed = (error) => this.#shardFailed(shard, error)
    }
    core.output.append(this.#shards[0]?.response as Buffer)
    core.output.flush()
  }

  #makeRouter(copy: ShardedCopy, target: CopyTarget): CopyInRouter {
    const effect = copy.statement.effects.copy
    const encoding = this.#core.transaction.settings.values.get('client_encoding')
    const server = this.#helds[0]?.server
    return new CopyInRouter({
      effect: effect as NonNullable<typeof effect>,
      table: effect?.table?.name ?? '',
      columns: effect?.columns ?? target.columns,
      shardCount: this.#core.access.planner.shardCount,
      ...(target.placer === undefined ? {} : { placer: target.placer }),
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
    if (tag === frontend.copyDone) return this.#dataDone()
    const reason =
      tag === frontend.copyFail
        ? `COPY from stdin failed: ${buffer.toString('utf8', start + 5, end - 1)}`
        : `unexpected message type 0x${tag.toString(16)} during COPY from stdin`
    this.#clientFailed = true
    this.#error ??= engineError('SESSION_COPY_FAILED', { reason })
    this.#endShards()
  }

  /** Never: errors of shards are handled here. */
  failed(): boolean {
    return !this.isOver
  }

  stop(): void {
    if (this.isOver) return
    this.isOver = true
    for (const shard of this.#shards) shard.abandon()
  }

  #data(body: Buffer): void {
    if (this.#error) return
    try {
      this.#router.push(body)
    } catch (error) {
      this.#error = toEngineError(error)
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
    try {
      if (!this.#error) this.#router.finish()
    } catch (error) {
      this.#error ??= toEngineError(error)
    }
    this.#endShards()
  }

  /** One shard has failed while data flows: the others are failed too, the client's data swallowed. */
  #shardFailed(shard: CopyShard, error: EngineError): void {
    if ('fields' in error) {
      const fields = error.fields as Record<string, string>
      if (fields['W']) fields['W'] = whereOf(fields['W'], shard.number, this.#shards.length)
    }
    this.#error = error
    for (const other of this.#shards) if (other !== shard) other.fail()
    this.#client.resume()
    this.#paused.clear()
    if (!this.#isExtended || !this.#dataEnded) void this.#finish()
  }

  #endShards(): void {
    for (const shard of this.#shards) {
      if (this.#clientFailed) shard.fail()
      else shard.done()
    }
    void this.#finish()
  }

  async #finish(): Promise<void> {
    if (this.#answered) return
    this.#answered = true
    const results = await Promise.all(this.#shards.map((shard) => shard.result))
    if (this.isOver) return
    const serverError = this.#clientFailed ? undefined : results.find((one) => one.error)?.error
    const error =
      serverError && !isOurFail(serverError) ? serverError : (this.#error ?? serverError)
    try {
      if (error) await this.#undo(error)
      else await this.#commit(results.map((one) => one.rows))
    } catch (failure) {
      await this.#undo(toEngineError(failure))
    }
    if (!this.#isExtended) this.#end()
    else this.#core.output.flush()
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

  #sync(): void {
    if (!this.#isExtended || !this.#dataEnded) return
    if (this.#answered) this.#end()
  }

  #end(): void {
    this.isOver = true
    this.#client.resume()
    this.#core.complete()
  }
}

/** Our own CopyFail, heard back from a shard. */
const isOurFail = (error: EngineError): boolean => error.sqlstate === '57014'

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
