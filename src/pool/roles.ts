/**
 * Which hosts are primaries, for hosts configured with role `auto`: asked of each host on a connection of its own, so
 * that a promotion is noticed although all pools are busy (D99, D100). Shared by the pools of all users.
 */
import type { Clock } from '../base/clock.js'
import { type Deferred, deferred } from '../base/deferred.js'
import type { Log } from '../base/log.js'
import { toEngineError } from '../errors/engine-error.js'
import type { ServerConnection } from '../server/server-connection.js'
import type { ServerTarget } from '../server/server-target.js'
import type { OpenServer } from './definition.js'

const QUESTION = `SELECT pg_catalog.pg_is_in_recovery(), CASE WHEN pg_catalog.pg_is_in_recovery()
 THEN pg_catalog.pg_last_wal_replay_lsn() ELSE pg_catalog.pg_current_wal_lsn() END
 OPERATOR(pg_catalog.-) '0/0'::pg_catalog.pg_lsn`

export type KnownRole = 'primary' | 'replica' | 'unknown'

export interface HostState {
  readonly address: string
  readonly role: KnownRole
  /** Bytes of WAL, from the start of time. */
  readonly lsnBytes: bigint
  /** Monotonic; 0: never answered. */
  readonly seenAtMs: number
}

interface Watched {
  target: ServerTarget
  connection: ServerConnection | undefined
  isInRecovery: boolean | undefined
  lsnBytes: bigint
  seenAtMs: number
  isAsking: boolean
  nextAtMs: number
  intervalMs: number
}

export interface HostRolesOptions {
  readonly clock: Clock
  readonly log: Log
  readonly openServer: OpenServer
  readonly timeoutMs: number
}

export class HostRoles {
  readonly #options: HostRolesOptions
  readonly #hosts = new Map<string, Watched>()
  #change: Deferred<void> = deferred()

  constructor(options: HostRolesOptions) {
    this.#options = options
  }

  /** Keeps asking this host; the first who names it lends his login. May be called again. */
  watch(target: ServerTarget, intervalMs: number): void {
    const known = this.#hosts.get(keyOf(target))
    if (known) {
      known.intervalMs = intervalMs
      known.target = target
      return
    }
    this.#hosts.set(keyOf(target), {
      target,
      connection: undefined,
      isInRecovery: undefined,
      lsnBytes: 0n,
      seenAtMs: 0,
      isAsking: false,
      nextAtMs: 0,
      intervalMs,
    })
  }

  /** Stops asking all hosts but these. */
  keepOnly(targets: readonly ServerTarget[]): void {
    const kept = new Set(targets.map(keyOf))
    for (const [key, host] of this.#hosts) {
      if (kept.has(key)) continue
      host.connection?.close()
      this.#hosts.delete(key)
    }
  }

  roleOf(target: ServerTarget): KnownRole {
    const recovering = this.#hosts.get(keyOf(target))?.isInRecovery
    return recovering === undefined ? 'unknown' : recovering ? 'replica' : 'primary'
  }

  /** Bytes of WAL that the host had when it was last asked. */
  lsnOf(target: ServerTarget): bigint {
    return this.#hosts.get(keyOf(target))?.lsnBytes ?? 0n
  }

  /** Resolves at the next change of any role. */
  get changed(): Promise<void> {
    return this.#change.promise
  }

  states(): HostState[] {
    return [...this.#hosts.values()].map((host) => ({
      address: `${host.target.host}:${host.target.port}`,
      role: this.roleOf(host.target),
      lsnBytes: host.lsnBytes,
      seenAtMs: host.seenAtMs,
    }))
  }

  /** One beat: asks those whose time has come. */
  beat(): void {
    const now = this.#options.clock.monotonicMs()
    for (const host of this.#hosts.values()) {
      if (!host.isAsking && now >= host.nextAtMs) void this.#ask(host)
    }
  }

  /** Something went wrong with a supposed primary: ask all hosts now. */
  lookAgain(): void {
    for (const host of this.#hosts.values()) host.nextAtMs = 0
    this.beat()
  }

  close(): void {
    this.keepOnly([])
  }

  async #ask(host: Watched): Promise<void> {
    const { clock, openServer, timeoutMs } = this.#options
    host.isAsking = true
    const timer = clock.after(timeoutMs, () => host.connection?.destroy())
    try {
      if (!host.connection || host.connection.closed)
        host.connection = await openServer(host.target, { timeoutMs })
      const [result] = await host.connection.query(QUESTION)
      const [recovering, lsn] = result?.rows[0] ?? []
      host.lsnBytes = BigInt(lsn ?? '0')
      host.seenAtMs = clock.monotonicMs()
      this.#note(host, recovering === 't')
    } catch (error) {
      host.connection?.destroy()
      host.connection = undefined
      // A primary that does not answer may have been replaced: its role is open until it answers again.
      if (host.isInRecovery === false) this.#note(host, undefined, toEngineError(error).message)
    } finally {
      timer.cancel()
      host.isAsking = false
      host.nextAtMs = clock.monotonicMs() + host.intervalMs
      if (!this.#hosts.has(keyOf(host.target))) host.connection?.close()
    }
  }

  #note(host: Watched, isInRecovery: boolean | undefined, reason?: string): void {
    if (host.isInRecovery === isInRecovery) return
    host.isInRecovery = isInRecovery
    const { target } = host
    const role = this.roleOf(target)
    const facts = { address: `${target.host}:${target.port}`, database: target.database, role }
    this.#options.log.info('role of a host', reason === undefined ? facts : { ...facts, reason })
    const before = this.#change
    this.#change = deferred()
    before.resolve()
  }
}

const keyOf = (target: ServerTarget): string =>
  JSON.stringify([target.host, target.port, target.database])
