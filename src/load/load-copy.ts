/**
 * Loads files into the shards of one table: lanes side by side, one transaction a shard and lane, committed when all have
 * succeeded. Nothing is left behind by a failure before the first commit; one between commits is reported shard by shard.
 */
import type { Clock } from '../base/clock.js'
import type { CopyOptions } from '../copy/copy-options.js'
import { engineError, toEngineError } from '../errors/engine-error.js'
import { adminQuery, closePg } from '../pg/admin-query.js'
import { connectPg } from '../pg/connect.js'
import { LoadCommit } from './commit-two-phase.js'
import { type CopyTable, readCopyTable, tableSql } from './copy-target.js'
import type { LaneOptions } from './lane-options.js'
import { nothingChanged } from './load-failure.js'
import { LaneCounts, loadInput } from './load-lane.js'
import type { LoadPlacement } from './load-placement.js'
import type { LoadReport } from './load-report.js'
import type { Compression, CopyInput } from './open-input.js'
import { ShardWriters } from './shard-writers.js'

export interface LoadRequest {
  readonly inputs: readonly CopyInput[]
  readonly compression: Compression
  /** Connection strings in shard order. */
  readonly urls: readonly string[]
  /** As SQL writes it: `t`, `s.t`, `"S"."T"`. */
  readonly table: string
  readonly columns?: readonly string[]
  readonly options: CopyOptions
  readonly jobs: number
  readonly isDryRun: boolean
  readonly verifies: boolean
  /** Commit by two-phase commit; needs `pgshard setup`, and one job. */
  readonly isTwoPhase?: boolean
  readonly maxBytesPerSec?: number
  /** Asked once, with the table as it is on the first shard. */
  readonly placementOf: (table: CopyTable) => LoadPlacement
}

export interface LoadWatch {
  readonly clock: Clock
  /** Aborted: stop and leave nothing behind. */
  readonly signal: AbortSignal
  /** Since the last call: bytes read of the inputs, rows split. */
  onProgress(readBytes: number, rows: number): void
  /** A line for the user. */
  note?(line: string): void
}

/** @throws the first failure; nothing was committed unless it is COPY_COMMIT_PARTIAL */
export async function loadCopy(request: LoadRequest, watch: LoadWatch): Promise<LoadReport> {
  const startedMs = watch.clock.monotonicMs()
  const table = await describeTable(request)
  const placement = request.placementOf(table)
  const targets =
    placement.kind === 'unsharded' ? [placement.shard] : request.urls.map((_, shard) => shard)
  const counts = new LaneCounts(targets.length)
  await new Load(request, watch, table, placement, targets, counts).run()
  const isReference = placement.kind === 'reference'
  const shards = targets.map((shard, index) => ({
    shard,
    rows: counts.rows[index] as number,
    bytes: counts.bytes[index] as number,
  }))
  const stored = isReference
    ? (shards[0]?.rows ?? 0)
    : shards.reduce((sum, { rows }) => sum + rows, 0)
  return {
    read: counts.read,
    written: request.isDryRun ? 0 : stored,
    rejected: request.isDryRun ? 0 : counts.read - stored,
    shards,
    elapsedMs: watch.clock.monotonicMs() - startedMs,
    isReference,
    isDryRun: request.isDryRun,
  }
}

export async function describeTable(request: LoadRequest): Promise<CopyTable> {
  const client = await connectPg(request.urls[0] as string)
  try {
    return await readCopyTable(client, request.table, 0)
  } finally {
    await closePg(client)
  }
}

class Load {
  readonly #request: LoadRequest
  readonly #watch: LoadWatch
  readonly #table: CopyTable
  readonly #targets: readonly number[]
  readonly #counts: LaneCounts
  readonly #lane: LaneOptions
  /** Aborted by the first failure, so that other lanes stop too. */
  readonly #stop = new AbortController()
  readonly #writers: ShardWriters[] = []

  constructor(
    request: LoadRequest,
    watch: LoadWatch,
    table: CopyTable,
    placement: LoadPlacement,
    targets: readonly number[],
    counts: LaneCounts,
  ) {
    this.#request = request
    this.#watch = watch
    this.#table = table
    this.#targets = targets
    this.#counts = counts
    this.#lane = {
      table,
      options: request.options,
      compression: request.compression,
      shardCount: targets.length,
      signal: AbortSignal.any([watch.signal, this.#stop.signal]),
      pace: makePace(request.maxBytesPerSec, watch),
      onProgress: (bytes, rows) => watch.onProgress(bytes, rows),
      ...(request.columns === undefined ? {} : { columns: request.columns }),
      ...(placement.kind === 'sharded' ? { placer: placement.placer } : {}),
    }
  }

  async run(): Promise<void> {
    const queue = [...this.#request.inputs]
    if (this.#request.isDryRun) {
      for (const input of queue) await loadInput(input, this.#lane, undefined, this.#counts)
      return
    }
    const urls = this.#targets.map((shard) => this.#request.urls[shard] as string)
    const twoPhase =
      this.#request.isTwoPhase === true && urls.length > 1
        ? await LoadCommit.open(urls, this.#watch.clock)
        : undefined
    try {
      await this.#fill(queue)
      const before = this.#request.verifies ? await this.#countRows() : undefined
      if (twoPhase === undefined) await this.#commit()
      else await this.#commitTwoPhase(twoPhase)
      if (before !== undefined) await this.#verify(before)
    } catch (error) {
      await Promise.all(this.#writers.map((writers) => writers.rollbackAll()))
      throw error
    } finally {
      await Promise.all(this.#writers.map((writers) => writers.close()))
    }
  }

  async #fill(queue: CopyInput[]): Promise<void> {
    const urls = this.#targets.map((shard) => this.#request.urls[shard] as string)
    const lanes = Math.min(this.#request.jobs, queue.length)
    // Not side by side: one that cannot be opened must not leave the others waiting.
    for (let lane = 0; lane < lanes; lane++) this.#writers.push(await ShardWriters.open(urls))
    const cut = () => {
      for (const writers of this.#writers) writers.destroy()
    }
    // A shard that does not answer must not hold up Ctrl-C for ever.
    this.#watch.signal.addEventListener('abort', () => this.#watch.clock.after(5000, cut), {
      once: true,
    })
    let firstError: unknown
    const work = this.#writers.map(async (writers) => {
      for (let input = queue.shift(); input !== undefined; input = queue.shift())
        await loadInput(input, this.#lane, writers, this.#counts)
    })
    for (const one of work)
      one.catch((error) => {
        firstError ??= error
        this.#stop.abort()
      })
    await Promise.allSettled(work)
    if (firstError !== undefined) throw firstError
    if (this.#watch.signal.aborted) throw engineError('INTERRUPTED', { what: 'copy-shard' })
  }

  async #commit(): Promise<void> {
    // What a commit would find is found before the first of them.
    await Promise.all(
      this.#writers.map((writers) => writers.ask('set constraints all immediate')),
    ).catch((error: unknown) => {
      throw nothingChanged(error)
    })
    const done = new Set<string>()
    const names = this.#writers.flatMap((_, lane) =>
      this.#targets.map((shard) => label(lane, shard, this.#writers.length)),
    )
    try {
      for (const [lane, writers] of this.#writers.entries())
        await writers.commitAll((index) =>
          done.add(label(lane, this.#targets[index] as number, this.#writers.length)),
        )
    } catch (error) {
      // A server that answered has rolled back; one that was lost may have committed.
      if (done.size === 0 && toEngineError(error).code === 'SERVER_ERROR')
        throw nothingChanged(error)
      const missing = names.filter((name) => !done.has(name))
      throw engineError(
        'COPY_COMMIT_PARTIAL',
        { committed: [...done].join(', ') || 'none', missing: missing.join(', ') },
        {
          cause: error,
          detail: commitDetail(error, missing[0] as string),
        },
      )
    }
  }

  async #commitTwoPhase(twoPhase: LoadCommit): Promise<void> {
    for (const { clients } of this.#writers) {
      try {
        const pending = await twoPhase.commit(clients)
        if (pending.length > 0)
          this.#watch.note?.(
            `committed; shards ${pending.join(', ')} could not be told yet and are brought to it by recovery (serve, or the next --single-transaction)`,
          )
      } catch (error) {
        throw nothingChanged(error)
      }
    }
  }

  /** Rows that others see now, by shard: our own are not committed yet. */
  async #countRows(): Promise<number[]> {
    const counted: number[] = []
    for (const shard of this.#targets) {
      const client = await connectPg(this.#request.urls[shard] as string)
      try {
        const [row] = await adminQuery(client, `select count(*) as n from ${tableSql(this.#table)}`)
        counted.push(Number(row?.['n']))
      } finally {
        await closePg(client)
      }
    }
    return counted
  }

  async #verify(before: readonly number[]): Promise<void> {
    const after = await this.#countRows()
    for (const [index, rows] of after.entries()) {
      const found = rows - (before[index] as number)
      const written = this.#counts.rows[index] as number
      if (found !== written)
        throw engineError('COPY_VERIFY_FAILED', {
          shard: this.#targets[index] as number,
          found,
          written,
        })
    }
  }
}

function commitDetail(error: unknown, shard: string): string {
  const known = toEngineError(error)
  const outcome =
    known.code === 'SERVER_ERROR' ? 'it rolled back' : 'whether it committed is not known'
  return `shard ${shard}: ${known.message}; ${outcome}`
}

const label = (lane: number, shard: number, lanes: number): string =>
  lanes === 1 ? String(shard) : `${shard} (job ${lane + 1})`

/** A pause that keeps the mean rate below the limit. */
export function makePace(maxBytesPerSec: number | undefined, watch: LoadWatch) {
  if (maxBytesPerSec === undefined) return async () => undefined
  const { clock, signal } = watch
  const startedMs = clock.monotonicMs()
  let bytes = 0
  return async (more: number) => {
    bytes += more
    const dueMs = (bytes * 1000) / maxBytesPerSec - (clock.monotonicMs() - startedMs)
    if (dueMs > 1) await clock.sleep(dueMs, signal)
  }
}
