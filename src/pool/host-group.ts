/**
 * The hosts of one shard, which hold the same data: which of those that call themselves primary is the one, and how far
 * the others are behind it. Decides by what hosts said; asks nobody.
 */
import type { HostRole } from '../topology/topology.js'

/** `stale`: calls itself primary, but another host has a newer timeline: it was replaced and does not know. */
export type KnownRole = 'primary' | 'replica' | 'unknown' | 'stale'

/** A place in the WAL of a shard. */
export interface Position {
  /** Of a replica the one that it follows, as far as it can tell. */
  readonly timeline: number
  /** Bytes of WAL written, or replayed, from the start of time. */
  readonly lsnBytes: bigint
}

/** What a host said of itself. */
export interface HostReport extends Position {
  readonly isInRecovery: boolean
  readonly systemId: string
}

export interface GroupHost {
  /** As configured. */
  readonly role: HostRole
  /** The newest; kept when the host no longer answers, because a timeline never gets older. */
  report: HostReport | undefined
  /** Monotonic; when `report` came. */
  seenAtMs: number
  /** False: the report says nothing of its role now. */
  isCurrent: boolean
  /** It has answered once, or failed to. */
  wasAsked: boolean
}

export interface Lag {
  readonly bytes: bigint
  /** How long the primary has been seen ahead of what the replica had when it was last asked. */
  readonly ms: number
}

/** How long the first host that says primary waits for what the others say. */
const SETTLE_MS = 1000
const SAMPLES = 512

export class HostGroup {
  readonly hosts: readonly GroupHost[]
  readonly #sinceMs: number
  #leader: GroupHost | undefined
  /** Where the primary's WAL stood, at each look. */
  #samples: { readonly atMs: number; readonly lsnBytes: bigint }[] = []

  constructor(hosts: readonly GroupHost[], nowMs: number) {
    this.hosts = hosts
    this.#sinceMs = nowMs
    this.review(nowMs)
  }

  get leader(): GroupHost | undefined {
    return this.#leader
  }

  /** Says again who leads, after a report, a silence or a beat. */
  review(nowMs: number): void {
    const leader =
      this.hosts.find((host) => host.role === 'primary') ??
      (this.#isSettled(nowMs) ? newestPrimary(this.hosts) : undefined)
    if (leader !== this.#leader && leader) this.#samples = []
    this.#leader = leader
    if (leader?.report && leader.isCurrent) this.#sample(leader.seenAtMs, leader.report.lsnBytes)
  }

  roleOf(host: GroupHost): KnownRole {
    if (host.role !== 'auto') return host.role
    if (!host.isCurrent || !host.report) return 'unknown'
    if (host.report.isInRecovery) return 'replica'
    if (host === this.#leader) return 'primary'
    return this.#leader || isOutdated(host, this.hosts) ? 'stale' : 'unknown'
  }

  /** undefined when the primary or the host was not seen yet. */
  lagOf(host: GroupHost): Lag | undefined {
    const lead = this.#leader?.report
    if (!lead || !host.report) return undefined
    if (host === this.#leader) return { bytes: 0n, ms: 0 }
    const { lsnBytes } = host.report
    const bytes = lead.lsnBytes > lsnBytes ? lead.lsnBytes - lsnBytes : 0n
    const ahead = this.#samples.find((sample) => sample.lsnBytes > lsnBytes)
    return { bytes, ms: ahead ? Math.max(0, host.seenAtMs - ahead.atMs) : 0 }
  }

  #isSettled(nowMs: number): boolean {
    return nowMs - this.#sinceMs >= SETTLE_MS || this.hosts.every((host) => host.wasAsked)
  }

  #sample(atMs: number, lsnBytes: bigint): void {
    const last = this.#samples.at(-1)
    if (last && last.lsnBytes >= lsnBytes) return
    this.#samples.push({ atMs, lsnBytes })
    if (this.#samples.length > SAMPLES) this.#samples.splice(0, SAMPLES / 2)
  }
}

/** Of several the one with the newest timeline, then the one with the most WAL; none whose timeline is known to be over. */
function newestPrimary(hosts: readonly GroupHost[]): GroupHost | undefined {
  let best: GroupHost | undefined
  for (const host of hosts) {
    if (!host.isCurrent || !host.report || host.report.isInRecovery) continue
    if (isOutdated(host, hosts)) continue
    if (!best?.report || isBeyond(host.report, best.report)) best = host
  }
  return best
}

export const isBeyond = (a: Position, b: Position): boolean =>
  a.timeline === b.timeline ? a.lsnBytes > b.lsnBytes : a.timeline > b.timeline

/** Another host of the same cluster was seen on a newer timeline; also one that does not answer now. */
const isOutdated = (host: GroupHost, hosts: readonly GroupHost[]): boolean =>
  hosts.some(
    ({ report }) =>
      report !== undefined &&
      report.systemId === host.report?.systemId &&
      report.timeline > host.report.timeline,
  )
