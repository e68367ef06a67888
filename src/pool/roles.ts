/**
 * Asks hosts what they are: primary or replica, how far in the WAL and on which timeline. Each is asked on a connection
 * of its own, so that a promotion is noticed although all pools are busy (D99, D100). Shared by the pools of all users.
 */
import type { Clock } from '../base/clock.js'
import { type Deferred, deferred } from '../base/deferred.js'
import type { Log } from '../base/log.js'
import { toEngineError } from '../errors/engine-error.js'
import type { ServerConnection } from '../server/server-connection.js'
import type { ServerTarget } from '../server/server-target.js'
import type { HostRole } from '../topology/topology.js'
import type { OpenServer } from './definition.js'
import {
  type GroupHost,
  HostGroup,
  type HostReport,
  type KnownRole,
  type Lag,
  type Position,
} from './host-group.js'

/**
 * A primary's timeline stands in the name of the file that it writes. A replica that may not look at its receiver tells
 * only what its last restartpoint knew: never too much.
 */
const QUESTION = `SELECT r, CASE WHEN r THEN pg_catalog.pg_last_wal_replay_lsn()
  ELSE pg_catalog.pg_current_wal_lsn() END OPERATOR(pg_catalog.-) '0/0'::pg_catalog.pg_lsn,
 CASE WHEN r THEN greatest((SELECT timeline_id FROM pg_catalog.pg_control_checkpoint()),
   (SELECT min_recovery_end_timeline FROM pg_catalog.pg_control_recovery()),
   (SELECT received_tli FROM pg_catalog.pg_stat_wal_receiver))
  ELSE ('x' || substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::int END,
 (SELECT system_identifier FROM pg_catalog.pg_control_system())
FROM (SELECT pg_catalog.pg_is_in_recovery() AS r OFFSET 0) s`

/** Looks that callers hurry are at least so far apart. */
const HURRY_MS = 100

export interface WatchedHost {
  readonly target: ServerTarget
  readonly role: HostRole
  /** Equal for the hosts of one shard. */
  readonly group: string
  readonly intervalMs: number
  /** Before the first look. */
  readonly delayMs: number
}

export interface HostState {
  readonly address: string
  readonly role: KnownRole
  readonly report: HostReport | undefined
  readonly lag: Lag | undefined
  /** Monotonic; 0: never answered. */
  readonly seenAtMs: number
}

interface Watched extends GroupHost {
  target: ServerTarget
  readonly key: string
  groups: HostGroup[]
  connection: ServerConnection | undefined
  shown: KnownRole
  /** It had replayed so much; 0 when it may have started again since. */
  reachedBytes: bigint
  isAsking: boolean
  mustAskAgain: boolean
  askedAtMs: number
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
  #hosts = new Map<string, Watched>()
  #groups = new Map<string, HostGroup>()
  #change: Deferred<void> = deferred()
  readonly #listeners = new Set<() => void>()

  constructor(options: HostRolesOptions) {
    this.#options = options
  }

  /** Which hosts to ask from now on; what is known of those that stay is kept. */
  define(wanted: readonly WatchedHost[]): void {
    const older = this.#hosts
    this.#hosts = new Map()
    const members = new Map<string, Watched[]>()
    for (const { target, role, group, intervalMs, delayMs } of wanted) {
      const key = hostKeyOf({ target, role })
      const host = this.#hosts.get(key) ?? older.get(key) ?? newWatched(key, target, role)
      host.target = target
      host.intervalMs = intervalMs
      const waitMs = older.has(key) ? intervalMs : delayMs
      host.nextAtMs = Math.min(host.nextAtMs, this.#now() + waitMs)
      this.#hosts.set(key, host)
      const hosts = members.get(group) ?? []
      if (!hosts.includes(host)) hosts.push(host)
      members.set(group, hosts)
    }
    for (const host of older.values()) if (this.#hosts.get(host.key) !== host) dropConnection(host)
    this.#regroup(members)
    this.#review()
  }

  roleOf(hostKey: string): KnownRole {
    return this.#hosts.get(hostKey)?.shown ?? 'unknown'
  }

  reportOf(hostKey: string): HostReport | undefined {
    return this.#hosts.get(hostKey)?.report
  }

  lagOf(hostKey: string): Lag | undefined {
    const host = this.#hosts.get(hostKey)
    return host?.groups[0]?.lagOf(host)
  }

  /** Resolves at the next change of any role. */
  get changed(): Promise<void> {
    return this.#change.promise
  }

  /** Calls `listener` after each change of any role, until the result is called. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  stateOf(hostKey: string): HostState | undefined {
    const host = this.#hosts.get(hostKey)
    if (!host) return undefined
    const { target, report, shown, seenAtMs } = host
    const address = `${target.host}:${target.port}`
    return { address, role: shown, report, lag: host.groups[0]?.lagOf(host), seenAtMs }
  }

  /** One beat: asks those whose time has come. */
  beat(): void {
    const now = this.#now()
    for (const host of this.#hosts.values()) {
      if (!host.isAsking && now >= host.nextAtMs) void this.#ask(host)
    }
    this.#review()
  }

  /** True when the host is known to have replayed so much; what it said before a server of it was lost does not count. */
  hasReached(hostKey: string, { timeline, lsnBytes }: Position): boolean {
    const host = this.#hosts.get(hostKey)
    if (!host?.report) return false
    return host.report.timeline >= timeline && host.reachedBytes >= lsnBytes
  }

  /** A server of the host has said how far it is, between two looks. */
  noteReached(hostKey: string, lsnBytes: bigint): void {
    const host = this.#hosts.get(hostKey)
    if (host && lsnBytes > host.reachedBytes) host.reachedBytes = lsnBytes
  }

  /** Somebody waits for what these hosts will say: ask them now, not at the next interval. */
  hurry(hostKeys: Iterable<string>): void {
    const now = this.#now()
    for (const key of hostKeys) {
      const host = this.#hosts.get(key)
      if (host && !host.isAsking && now - host.askedAtMs >= HURRY_MS) void this.#ask(host)
    }
  }

  /**
   * A server of this host was lost, refused, or turned out not to be a primary. What the host said counts no more, and
   * it is asked on a new connection: the old one may belong to a process that outlives its postmaster.
   */
  suspect(hostKey: string, reason: string): void {
    const host = this.#hosts.get(hostKey)
    if (!host) return
    if (host.report && !host.report.isInRecovery) host.isCurrent = false
    host.reachedBytes = 0n
    dropConnection(host)
    if (host.isAsking) host.mustAskAgain = true
    else void this.#ask(host)
    this.#review(reason)
  }

  close(): void {
    this.define([])
  }

  #regroup(members: ReadonlyMap<string, Watched[]>): void {
    const older = this.#groups
    this.#groups = new Map()
    for (const host of this.#hosts.values()) host.groups = []
    for (const [name, hosts] of members) {
      const known = older.get(name)
      const isSame =
        known?.hosts.length === hosts.length && hosts.every((host) => known.hosts.includes(host))
      const group = known && isSame ? known : new HostGroup(hosts, this.#now())
      this.#groups.set(name, group)
      for (const host of hosts) host.groups.push(group)
    }
  }

  async #ask(host: Watched): Promise<void> {
    const { clock, timeoutMs } = this.#options
    host.isAsking = true
    host.askedAtMs = this.#now()
    const timer = clock.after(timeoutMs, () => dropConnection(host))
    let reason: string | undefined
    try {
      const report = await this.#reportOf(host)
      if (!host.mustAskAgain) {
        host.report = report
        host.reachedBytes = report.lsnBytes
        host.isCurrent = true
        host.seenAtMs = this.#now()
      }
    } catch (error) {
      reason = toEngineError(error).message
      host.reachedBytes = 0n
      dropConnection(host)
      // A primary that does not answer may have been replaced: its role is open until it answers again.
      if (host.report && !host.report.isInRecovery) host.isCurrent = false
    }
    timer.cancel()
    host.wasAsked = true
    host.isAsking = false
    host.nextAtMs = this.#now() + host.intervalMs
    if (this.#hosts.get(host.key) !== host) return dropConnection(host)
    this.#review(reason)
    if (!host.mustAskAgain) return
    host.mustAskAgain = false
    void this.#ask(host)
  }

  async #reportOf(host: Watched): Promise<HostReport> {
    const { openServer, timeoutMs } = this.#options
    let server = host.connection
    if (!server || server.closed) {
      server = await openServer(host.target, { timeoutMs })
      server.onClose = () => this.#closed(host)
      host.connection = server
    }
    const [result] = await server.query(QUESTION)
    const [recovering, lsn, timeline, systemId] = result?.rows[0] ?? []
    return {
      isInRecovery: recovering === 't',
      lsnBytes: BigInt(lsn ?? '0'),
      timeline: Number(timeline ?? 0),
      systemId: systemId ?? '',
    }
  }

  /** Not by us: the host may have died, also when nobody works there. */
  #closed(host: Watched): void {
    const lost = host.connection?.lost
    if (lost && lost.code !== 'SERVER_CLOSED_BY_US') this.suspect(host.key, lost.message)
  }

  /** Decides again who leads, and tells whoever listens when a role has changed. */
  #review(reason?: string): void {
    const now = this.#now()
    for (const group of this.#groups.values()) group.review(now)
    let isChanged = false
    for (const host of this.#hosts.values()) {
      const role = roleIn(host)
      if (role === host.shown) continue
      host.shown = role
      isChanged = true
      if (host.role === 'auto') this.#say(host, reason)
    }
    if (!isChanged) return
    const before = this.#change
    this.#change = deferred()
    before.resolve()
    for (const listener of [...this.#listeners]) listener()
  }

  #say(host: Watched, reason: string | undefined): void {
    const { target, shown: role } = host
    const facts = {
      address: `${target.host}:${target.port}`,
      database: target.database,
      role,
      timeline: host.report?.timeline,
    }
    const { log } = this.#options
    if (role === 'stale')
      log.warn('a host that was replaced calls itself primary; it is not used', facts)
    else log.info('role of a host', reason === undefined ? facts : { ...facts, reason })
  }

  #now(): number {
    return this.#options.clock.monotonicMs()
  }
}

/** One database of one server, whoever logs in. */
export const hostKeyOf = (host: {
  readonly target: ServerTarget
  readonly role: HostRole
}): string => JSON.stringify([host.target.host, host.target.port, host.target.database, host.role])

function newWatched(key: string, target: ServerTarget, role: HostRole): Watched {
  return {
    target,
    key,
    role,
    groups: [],
    connection: undefined,
    report: undefined,
    seenAtMs: 0,
    isCurrent: false,
    wasAsked: false,
    shown: 'unknown',
    reachedBytes: 0n,
    isAsking: false,
    mustAskAgain: false,
    askedAtMs: Number.NEGATIVE_INFINITY,
    nextAtMs: Number.POSITIVE_INFINITY,
    intervalMs: 0,
  }
}

function dropConnection(host: Watched): void {
  const { connection } = host
  host.connection = undefined
  connection?.destroy()
}

/** A host that stands in several groups is the primary only where nothing is newer. */
function roleIn(host: Watched): KnownRole {
  const roles = host.groups.map((group) => group.roleOf(host))
  return roles.find((role) => role === 'stale') ?? roles[0] ?? 'unknown'
}
