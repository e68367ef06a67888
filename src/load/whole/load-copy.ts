/**
 * Loads files into the shards of one table: lanes side by side, one transaction a shard and lane, committed when all have
 * succeeded. Nothing is left behind by a failure before the first commit; one between commits is reported shard by shard.
 */
import { engineError, toEngineError } from '../../errors/engine-error.js'
import type { CopyInput } from '../input/open-input.js'
import { nothingChanged } from '../load-failure.js'
import type { LoadReport } from '../load-report.js'
import type { LaneOptions } from '../request/lane-options.js'
import type { LoadRequest, LoadWatch } from '../request/load-request.js'
import {
  countRows,
  findSetting,
  type LoadSetting,
  laneOf,
  verifyCounts,
} from '../request/load-setting.js'
import { ShardClients } from '../shards/shard-clients.js'
import { LoadCommit } from './commit-two-phase.js'
import { LaneCounts, loadInput } from './load-lane.js'
import { ShardWriters } from './shard-writers.js'

/** @throws the first failure; nothing was committed unless it is COPY_COMMIT_PARTIAL */
export async function loadCopy(request: LoadRequest, watch: LoadWatch): Promise<LoadReport> {
  const startedMs = watch.clock.monotonicMs()
  const clients = new ShardClients()
  try {
    const setting = await findSetting(request, clients)
    const counts = new LaneCounts(setting.targets.length)
    await new Load(request, watch, setting, clients, counts).run()
    return reportOf(request, setting, counts, watch.clock.monotonicMs() - startedMs)
  } finally {
    await clients.close()
  }
}

function reportOf(
  request: LoadRequest,
  { placement, targets }: LoadSetting,
  counts: LaneCounts,
  elapsedMs: number,
): LoadReport {
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
    elapsedMs,
    isReference,
    isDryRun: request.isDryRun,
  }
}

class Load {
  readonly #request: LoadRequest
  readonly #watch: LoadWatch
  readonly #setting: LoadSetting
  readonly #clients: ShardClients
  readonly #counts: LaneCounts
  readonly #lane: LaneOptions
  readonly #stop = new AbortController()
  readonly #writers: ShardWriters[] = []

  constructor(
    request: LoadRequest,
    watch: LoadWatch,
    setting: LoadSetting,
    clients: ShardClients,
    counts: LaneCounts,
  ) {
    this.#request = request
    this.#watch = watch
    this.#setting = setting
    this.#clients = clients
    this.#counts = counts
    this.#lane = laneOf(request, watch, setting, this.#stop.signal)
  }

  async run(): Promise<void> {
    const queue = [...this.#request.inputs]
    if (this.#request.isDryRun) {
      for (const input of queue) await loadInput(input, this.#lane, undefined, this.#counts)
      return
    }
    const { urls } = this.#setting
    const twoPhase =
      this.#request.isTwoPhase === true && urls.length > 1
        ? await LoadCommit.open(urls, this.#watch.clock)
        : undefined
    try {
      await this.#fill(queue)
      const before = this.#request.verifies
        ? await countRows(this.#setting, this.#clients)
        : undefined
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
    const { urls } = this.#setting
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
      this.#setting.targets.map((shard) => label(lane, shard, this.#writers.length)),
    )
    try {
      for (const [lane, writers] of this.#writers.entries())
        await writers.commitAll((index) =>
          done.add(label(lane, this.#setting.targets[index] as number, this.#writers.length)),
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

  async #verify(before: readonly number[]): Promise<void> {
    const after = await countRows(this.#setting, this.#clients)
    verifyCounts(this.#setting, before, after, this.#counts.rows)
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
