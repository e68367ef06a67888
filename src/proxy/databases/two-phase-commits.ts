/**
 * Two-phase commit for the databases of a proxy: who may use it, on which servers, and the sweep that ends what a dead
 * process left behind. The protocol itself is executor/two-phase.ts.
 */
import type { TransactionView } from '../../admin/proxy-view.js'
import type { Clock, Timer } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import { toEngineError } from '../../errors/engine-error.js'
import { commitTwoPhase, type TwoPhasePart, type TwoPhaseStep } from '../../executor/two-phase.js'
import {
  notRecoverable,
  readTwoPhaseUser,
  type TwoPhaseIdentity,
  type WithServer,
} from '../../executor/two-phase-identity.js'
import {
  RECOVERY_GRACE_MS,
  type RecoveryReport,
  recoverPrepared,
} from '../../executor/two-phase-recovery.js'
import type { OpenServer } from '../../pool/definition.js'
import type { Pools } from '../../pool/pool-map.js'
import type { ServerCheckout } from '../../pool/shard-pools.js'
import type { UserPools } from '../../pool/user-pools.js'
import { Settings, settingsDifference } from '../../server/settings.js'
import { isPaused, openPastPool } from './ask-primary.js'

/** After a "no", the shards are asked again no sooner: `pgshard setup` may have been run meanwhile. */
const ASK_AGAIN_MS = 5000

/** For a server of a pool that has none free. */
const PATIENCE_MS = 500

interface Standing {
  readonly identity?: TwoPhaseIdentity
  /** The superuser among the configured users who recovers for one that may not. */
  readonly recoverer?: UserPools
  /** Why there is none. */
  readonly reason?: string
  readonly askedMs: number
}

export interface TwoPhaseCommitsOptions {
  readonly pools: Pools
  readonly openServer: OpenServer
  readonly clock: Clock
  readonly log: Log
  readonly waitMs: () => number
  /** Told of each step of each commit; for tests that end the process there. */
  readonly onStep?: ((step: TwoPhaseStep) => void) | undefined
}

export class TwoPhaseCommits {
  readonly #pools: Pools
  readonly #clock: Clock
  readonly #log: Log
  readonly #waitMs: () => number
  readonly #onStep: TwoPhaseCommitsOptions['onStep']
  readonly #withServer: (user: UserPools) => WithServer
  #standings = new WeakMap<UserPools, Standing>()
  #left = new WeakMap<UserPools, RecoveryReport['left']>()
  #sweep: Timer | undefined

  constructor(options: TwoPhaseCommitsOptions) {
    this.#pools = options.pools
    this.#clock = options.clock
    this.#log = options.log
    this.#waitMs = options.waitMs
    this.#onStep = options.onStep
    this.#withServer = (user) => withServerOf(user, options)
  }

  /** Whether transactions of this user may write on several shards; asks again in the background after a "no". */
  allows(user: UserPools): boolean {
    const standing = this.#standings.get(user)
    if (standing?.identity) return true
    if (!standing || this.#clock.monotonicMs() - standing.askedMs > ASK_AGAIN_MS)
      void this.learn(user)
    return false
  }

  /** Asks every shard of the user's database; a "no" is logged with its reason, once. */
  async learn(user: UserPools): Promise<void> {
    if (user.shardCount < 2 || this.#standings.get(user)?.identity) return
    const isFirst = !this.#standings.has(user)
    this.#standings.set(user, { askedMs: this.#clock.monotonicMs() })
    try {
      const found = await this.#ask(user)
      this.#standings.set(user, { ...found, askedMs: this.#clock.monotonicMs() })
    } catch (error) {
      const { message, hint } = toEngineError(error)
      this.#standings.set(user, { reason: message, askedMs: this.#clock.monotonicMs() })
      if (isFirst) this.#log.warn(`cross_shard_writes is "error": ${message}`, { hint })
    }
  }

  /** @throws TWO_PHASE_NOT_READY */
  async #ask(user: UserPools): Promise<{ identity: TwoPhaseIdentity; recoverer?: UserPools }> {
    const { database } = user.definition
    const read = (one: UserPools) =>
      readTwoPhaseUser(database, one.shardCount, this.#withServer(one))
    const identity = await read(user)
    if (identity.unrecoverable === undefined) return { identity }
    for (const other of this.#pools.users()) {
      if (other === user || other.definition.database !== database) continue
      const isSuperuser = await read(other).then(
        (found) => found.isSuperuser,
        () => false,
      )
      if (isSuperuser) return { identity, recoverer: other }
    }
    throw notRecoverable(database, identity.unrecoverable)
  }

  /** What the last sweep has left, and who may not write on several shards. */
  *unfinished(): Iterable<TransactionView> {
    for (const user of this.#pools.users()) {
      const { database, user: name } = user.definition
      const reason = this.#standings.get(user)?.reason
      const who = { database, user: name }
      if (reason !== undefined) yield { ...who, name: '', state: 'unavailable', reason }
      for (const { gid, shard, ageMs, reason: why } of this.#left.get(user) ?? []) {
        yield { ...who, name: gid, state: 'prepared', shard, ageMs, reason: why }
      }
    }
  }

  /** After RELOAD the shards may be others. */
  forget(): void {
    this.#standings = new WeakMap()
  }

  /** Commits for a client; gives the shards whose second phase is still pending. */
  async commit(
    user: UserPools,
    parts: readonly TwoPhasePart[],
    onKey: (key: string) => void,
  ): Promise<readonly number[]> {
    if (!this.#standings.get(user)?.identity) await this.learn(user)
    const standing = this.#standings.get(user)
    const { identity, recoverer } = standing?.identity
      ? { identity: standing.identity, recoverer: standing.recoverer }
      : await this.#ask(user)
    const outcome = await commitTwoPhase(parts, {
      identity,
      withServer: this.#withServer(recoverer ?? user),
      clock: this.#clock,
      waitMs: this.#waitMs(),
      onKey,
      ...(this.#onStep ? { onStep: this.#onStep } : {}),
    })
    return outcome.pending
  }

  /** Sweeps from now on, every grace time. */
  start(): void {
    this.#sweep = this.#clock.after(RECOVERY_GRACE_MS, () => {
      void this.#recover().finally(() => {
        if (this.#sweep) this.start()
      })
    })
  }

  stop(): void {
    this.#sweep?.cancel()
    this.#sweep = undefined
  }

  async #recover(): Promise<void> {
    for (const user of this.#pools.users()) {
      const { identity, recoverer } = this.#standings.get(user) ?? {}
      if (!identity || recoverer) continue
      const report = await recoverPrepared({ identity, withServer: this.#withServer(user) })
      this.#left.set(user, report.left)
      if (report.committed + report.rolledBack === 0) continue
      this.#log.info('transactions left by a dead process were ended', {
        database: user.definition.database,
        committed: report.committed,
        rolledBack: report.rolledBack,
      })
    }
  }
}

/**
 * A connection to a shard's primary without any client's settings: a pooled one, or one past the pool. PAUSE waits for
 * the very transaction that is being committed; and whoever has the servers of a small pool may wait for a lock that
 * only the end of this transaction lets go.
 */
const withServerOf =
  (user: UserPools, { openServer, clock }: TwoPhaseCommitsOptions): WithServer =>
  async (shard, work) => {
    const checkout = await pooled(user, shard, clock)
    if (!checkout) {
      const own = await openPastPool(user, shard, openServer)
      try {
        return await work(own)
      } finally {
        own.close()
      }
    }
    const server = checkout.resource
    try {
      const reset = settingsDifference(server.settings, Settings.none)
      if (reset !== '') await server.query(reset)
      server.settings = Settings.none
      return await work(server)
    } finally {
      if (server.isIdle) checkout.release()
      else checkout.discard('not idle after a statement of two-phase commit')
    }
  }

/** A server of the pool, ahead of those that hold nothing; undefined: none came within half a second. */
async function pooled(
  user: UserPools,
  shard: number,
  clock: Clock,
): Promise<ServerCheckout | undefined> {
  if (isPaused(user, shard)) return undefined
  const patience = new AbortController()
  const timer = clock.after(PATIENCE_MS, () => patience.abort())
  try {
    return await user.checkout(shard, 'primary', { holdsServers: true, signal: patience.signal })
  } catch (error) {
    if (patience.signal.aborted) return undefined
    throw error
  } finally {
    timer.cancel()
  }
}
