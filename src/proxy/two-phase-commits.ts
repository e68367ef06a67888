/**
 * Two-phase commit for the databases of a proxy: who may use it, on which servers, and the sweep that ends what a dead
 * process left behind. The protocol itself is executor/two-phase.ts.
 */
import type { TransactionView } from '../admin/proxy-view.js'
import type { Clock, Timer } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { toEngineError } from '../errors/engine-error.js'
import { commitTwoPhase, type TwoPhasePart } from '../executor/two-phase.js'
import {
  readTwoPhaseIdentity,
  type TwoPhaseIdentity,
  type WithServer,
} from '../executor/two-phase-identity.js'
import {
  RECOVERY_GRACE_MS,
  type RecoveryReport,
  recoverPrepared,
} from '../executor/two-phase-recovery.js'
import type { OpenServer } from '../pool/definition.js'
import type { Pools } from '../pool/pool-map.js'
import type { UserPools } from '../pool/user-pools.js'
import { Settings, settingsDifference } from '../server/settings.js'
import { openPastPause } from './ask-primary.js'

/** After a "no", the shards are asked again no sooner: `pgshard setup` may have been run meanwhile. */
const ASK_AGAIN_MS = 5000

interface Standing {
  readonly identity?: TwoPhaseIdentity
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
}

export class TwoPhaseCommits {
  readonly #pools: Pools
  readonly #clock: Clock
  readonly #log: Log
  readonly #waitMs: () => number
  readonly #withServer: (user: UserPools) => WithServer
  #standings = new WeakMap<UserPools, Standing>()
  #left = new WeakMap<UserPools, RecoveryReport['left']>()
  #sweep: Timer | undefined

  constructor(options: TwoPhaseCommitsOptions) {
    this.#pools = options.pools
    this.#clock = options.clock
    this.#log = options.log
    this.#waitMs = options.waitMs
    this.#withServer = (user) => withServerOf(user, options.openServer)
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
      const { database } = user.definition
      const identity = await readTwoPhaseIdentity(database, user.shardCount, this.#withServer(user))
      this.#standings.set(user, { identity, askedMs: this.#clock.monotonicMs() })
    } catch (error) {
      const { message, hint } = toEngineError(error)
      this.#standings.set(user, { reason: message, askedMs: this.#clock.monotonicMs() })
      if (isFirst) this.#log.warn(`cross_shard_writes is "error": ${message}`, { hint })
    }
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
  async commit(user: UserPools, parts: readonly TwoPhasePart[]): Promise<readonly number[]> {
    if (!this.#standings.get(user)?.identity) await this.learn(user)
    const identity =
      this.#standings.get(user)?.identity ??
      (await readTwoPhaseIdentity(
        user.definition.database,
        user.shardCount,
        this.#withServer(user),
      ))
    const outcome = await commitTwoPhase(parts, {
      identity,
      withServer: this.#withServer(user),
      clock: this.#clock,
      waitMs: this.#waitMs(),
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
      const identity = this.#standings.get(user)?.identity
      if (!identity) continue
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
 * A connection to a shard's primary without any client's settings: a pooled one, or one past PAUSE, which waits for the
 * very transaction that is being committed, and during which a RELOAD asks the shards.
 */
const withServerOf =
  (user: UserPools, openServer: OpenServer): WithServer =>
  async (shard, work) => {
    const own = await openPastPause(user, shard, openServer)
    if (own) {
      try {
        return await work(own)
      } finally {
        own.close()
      }
    }
    // Ahead of those that hold nothing: a commit under way waits for it.
    const checkout = await user.checkout(shard, 'primary', { holdsServers: true })
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
