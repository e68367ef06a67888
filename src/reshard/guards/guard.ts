/**
 * Watches the sources while a run works: looks at each once a second, makes the copy wait while a source or its standbys
 * suffer, and gives the run up before our slots fill a source's disk. Its limits can be changed while it watches, by rows
 * of `pgshard.reshard_setting`; what it has seen is kept in `pgshard.reshard_sample` for the report.
 */
import type { Clock } from '../../base/clock.js'
import { type Deferred, deferred } from '../../base/deferred.js'
import { engineError, toEngineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { quoteName } from '../../pg/sql-names.js'
import { dropSlot, listSlots } from '../../replication/slot.js'
import type { Pace } from '../copy/pace.js'
import { openShard, placeOf, type ReshardSide, withShard } from '../side.js'
import type { GuardLimits } from './guard-limits.js'
import { judge, type SourceReading, type Verdict } from './judge.js'
import type { Sample, SampleStore } from './sample-store.js'

const PERIOD_MS = 1_000

export interface GuardOptions {
  readonly source: ReshardSide
  readonly run: string
  readonly clock: Clock
  readonly pace: Pace
  /** What the run was started with. */
  readonly limits: GuardLimits
  readonly store: SampleStore
  /** What the run has done so far. */
  readonly progress: () => Pick<Sample, 'copiedBytes' | 'changes'>
  readonly say: (text: string) => void
  /** Somebody asks the run to end. */
  readonly onStop: () => void
  /** Called before the sources are freed: what the run does now breaks off. */
  readonly onGiveUp: () => void
  readonly signal?: AbortSignal | undefined
  readonly periodMs?: number
}

export class Guard {
  readonly #options: GuardOptions
  readonly #failure: Deferred<never> = deferred()
  readonly #stop = new AbortController()
  readonly #clients: (HostClient | undefined)[] = []
  #verdict: Verdict = { do: 'go' }
  #loop: Promise<void> = Promise.resolve()
  /** A store on a target that does not answer must not keep us from looking at the sources. */
  #storing: Promise<void> | undefined
  #stored: Partial<GuardLimits> = {}

  constructor(options: GuardOptions) {
    this.#options = options
    this.#failure.promise.catch(() => undefined)
  }

  /** The run must be given up; `failed` tells when the sources are free. */
  get isGivingUp(): boolean {
    return this.#verdict.do === 'abort'
  }

  /** Rejects when the run was given up; never resolves. */
  get failed(): Promise<never> {
    return this.#failure.promise
  }

  get limits(): GuardLimits {
    return { ...this.#options.limits, ...this.#stored }
  }

  start(): void {
    this.#options.signal?.addEventListener('abort', () => this.#stop.abort(), { once: true })
    this.#loop = this.#run()
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    this.#options.pace.letGo()
    await this.#loop
    await Promise.all(this.#clients.map((client) => client?.end().catch(() => undefined)))
  }

  async #run(): Promise<void> {
    const { clock, periodMs = PERIOD_MS, pace } = this.#options
    while (!this.#stop.signal.aborted) {
      // A source that cannot be asked is found by the streams and the readers themselves.
      const readings = await this.#look().catch(() => undefined)
      if (readings) {
        this.#keep(readings)
        await this.#act(judge(readings, this.limits, this.#verdict.do === 'hold'), readings)
      }
      if (this.#verdict.do === 'abort') break
      await clock.sleep(periodMs, this.#stop.signal)
    }
    pace.letGo()
  }

  async #act(verdict: Verdict, readings: readonly SourceReading[]): Promise<void> {
    const { pace, say } = this.#options
    if (pace.bytesPerSec !== this.limits.maxRate) pace.bytesPerSec = this.limits.maxRate
    const before = this.#verdict
    this.#verdict = verdict
    if (verdict.do === 'abort') return this.#giveUp(verdict.reason ?? '')
    if (readings.some((reading) => reading.isLost)) {
      say('a source has thrown our slot away: the run cannot go on')
    }
    if (verdict.do === before.do) return
    if (verdict.do === 'hold') {
      pace.hold()
      say(`paused: ${verdict.reason}`)
    } else {
      pace.letGo()
      say('going on: the sources are within their limits again')
    }
  }

  /** Frees the sources first: nothing of the targets may be needed for that. */
  async #giveUp(reason: string): Promise<void> {
    const { source, run, clock, onGiveUp } = this.#options
    onGiveUp()
    const left = await freeSources(source, run, clock)
    const rest =
      left.length === 0 ? 'its slots and publications are gone' : `still there: ${left.join('; ')}`
    this.#failure.reject(engineError('RESHARD_WAL_GUARD', { reason, rest }))
  }

  #look(): Promise<SourceReading[]> {
    return Promise.all(
      this.#options.source.shards.map(async (target, shard) => {
        const client = this.#clients[shard] ?? (await openShard(target))
        this.#clients[shard] = client
        try {
          return await readSource(client, this.#options.run, this.#options.clock)
        } catch (error) {
          this.#clients[shard] = undefined
          client.end().catch(() => undefined)
          throw error
        }
      }),
    )
  }

  #keep(readings: readonly SourceReading[]): void {
    if (this.#storing !== undefined) return
    const { store, clock, progress } = this.#options
    const most = (of: (reading: SourceReading) => number): number =>
      Math.max(0, ...readings.map(of))
    const sample: Sample = {
      atMs: clock.nowMs(),
      ...progress(),
      lagBytes: most((reading) => reading.lagBytes),
      walKept: most((reading) => reading.walKept),
      latencyMs: Math.round(most((reading) => reading.latencyMs) * 10) / 10,
      isHeld: this.#verdict.do === 'hold',
    }
    this.#storing = store
      .exchange(sample)
      .then(({ limits, stop }) => {
        this.#stored = limits
        if (stop) this.#options.onStop()
      })
      .catch(() => undefined)
      .finally(() => {
        this.#storing = undefined
      })
  }
}

/** One look at a source: how fast it answers, what its standbys lack, what our slots make it keep. */
async function readSource(client: HostClient, run: string, clock: Clock): Promise<SourceReading> {
  const startedMs = clock.monotonicMs()
  const [row] = await adminQuery(
    client,
    `SELECT (SELECT max(extract(epoch FROM replay_lag) * 1000) FROM pg_stat_replication r
              WHERE NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.active_pid = r.pid AND s.slot_type = 'logical'))::text AS replica_lag,
            coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)), 0)::text AS kept,
            coalesce(max(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)) FILTER (WHERE NOT temporary), 0)::text AS lag,
            coalesce(bool_or(wal_status = 'lost'), false)::text AS lost
       FROM pg_replication_slots WHERE starts_with(slot_name::text, $1)`,
    [`pgshard_${run}`],
  )
  const lag = row?.['replica_lag']
  return {
    latencyMs: clock.monotonicMs() - startedMs,
    replicaLagMs: lag == null ? undefined : Number(lag),
    walKept: Number(row?.['kept'] ?? 0),
    lagBytes: Number(row?.['lag'] ?? 0),
    isLost: row?.['lost'] === 'true',
  }
}

/** Drops slots and publications of a run by their names alone; what could not be dropped is said. */
async function freeSources(source: ReshardSide, run: string, clock: Clock): Promise<string[]> {
  const prefix = `pgshard_${run}`
  const ends = await Promise.allSettled(
    source.shards.map((target) =>
      withShard(target, async (client) => {
        for (const slot of await listSlots(client, prefix)) await dropSlot(client, slot.name, clock)
        const made = await adminQuery(
          client,
          'SELECT pubname::text AS name FROM pg_publication WHERE starts_with(pubname::text, $1)',
          [prefix],
        )
        for (const { name } of made) {
          await adminQuery(client, `DROP PUBLICATION IF EXISTS ${quoteName(name ?? '')}`)
        }
      }),
    ),
  )
  return ends.flatMap((end, shard) =>
    end.status === 'rejected'
      ? [`on ${placeOf(source.shards[shard] as never)}: ${toEngineError(end.reason).message}`]
      : [],
  )
}
