/** Looks every few seconds whether the tables of the sources are still those that the run began with. */
import type { Clock } from '../../base/clock.js'
import { type Deferred, deferred } from '../../base/deferred.js'
import { engineError, isEngineError } from '../../errors/engine-error.js'
import type { HostClient, HostTarget } from '../../pg/host-client.js'
import { onEachShard, placeOf, type ReshardSide } from '../side.js'
import { changedShape, readShapes, type TableShapes } from './table-shapes.js'

const PERIOD_MS = 5_000

export class DdlWatch {
  readonly #source: ReshardSide
  /** By source shard. */
  readonly #before: readonly TableShapes[]
  readonly #clock: Clock
  readonly #failure: Deferred<never> = deferred()
  readonly #stop = new AbortController()
  #loop: Promise<void> | undefined

  constructor(source: ReshardSide, before: readonly TableShapes[], clock: Clock) {
    this.#source = source
    this.#before = before
    this.#clock = clock
    this.#failure.promise.catch(() => undefined)
  }

  /** Rejects when a table has changed; never resolves. */
  get failed(): Promise<never> {
    return this.#failure.promise
  }

  start(periodMs = PERIOD_MS): void {
    this.#loop ??= this.#run(periodMs)
  }

  /** Over connections that are open, if any. @throws RESHARD_DDL */
  async check(open?: readonly HostClient[]): Promise<void> {
    const now = open
      ? await Promise.all(open.map(readShapes))
      : await onEachShard(this.#source, readShapes)
    for (const [shard, shapes] of now.entries()) {
      const change = changedShape(this.#before[shard] ?? {}, shapes)
      if (!change) continue
      const server = placeOf(this.#source.shards[shard] as HostTarget)
      throw engineError('RESHARD_DDL', { table: change.table, server, what: change.what })
    }
  }

  async stop(): Promise<void> {
    this.#stop.abort()
    await this.#loop
  }

  async #run(periodMs: number): Promise<void> {
    while (!this.#stop.signal.aborted) {
      await this.#clock.sleep(periodMs, this.#stop.signal)
      if (this.#stop.signal.aborted) return
      try {
        await this.check()
      } catch (error) {
        // A source that cannot be asked is found by the streams and the readers themselves.
        if (!isEngineError(error) || error.code !== 'RESHARD_DDL') continue
        this.#failure.reject(error)
        return
      }
    }
  }
}
