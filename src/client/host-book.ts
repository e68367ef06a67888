/** The hosts of a balanced pool or connection: who they are, which may be asked, what was observed of them. */
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import type { Conninfo, ConninfoHost } from '../topology/conninfo.js'
import type { Uint64Source } from '../topology/prng.js'
import type { StrategyView } from './strategy.js'

/** A response time that was not measured again is believed half as much after this. */
const FORGET_MS = 10_000
/** Weight of the newest measurement. */
const NEWEST = 0.3

export interface HostStatistics {
  /** `host:port`, as in the connection string. */
  readonly host: string
  readonly weight: number
  readonly isRemoved: boolean
  /** Not asked for another so many ms; 0: it may be asked. */
  readonly blockedMs: number
  readonly open: number
  readonly inUse: number
  /** Times that it was picked, and that connecting to it failed. */
  readonly picks: number
  readonly failures: number
  /** Connections left because of an error. */
  readonly switches: number
  /** Mean of connecting, and running mean of answering, ms; 0: never. */
  readonly connectMs: number
  readonly responseMs: number
}

class Host {
  readonly name: string
  conninfo: Conninfo
  weight = 1
  isRemoved = false
  blockedUntilMs = 0
  open = 0
  inUse = 0
  picks = 0
  failures = 0
  switches = 0
  connects = 0
  connectMs = 0
  responseMs = 0
  measuredAtMs = 0

  constructor(name: string, conninfo: Conninfo) {
    this.name = name
    this.conninfo = conninfo
  }
}

const nameOf = ({ host, hostaddr, port }: ConninfoHost): string => `${host || hostaddr}:${port}`

export class HostBook {
  readonly #clock: Clock
  readonly #conninfo: Conninfo
  readonly #hosts: Host[] = []
  #current: number | undefined

  /** A host that is named several times counts as one of that weight. */
  constructor(conninfo: Conninfo, clock: Clock) {
    this.#clock = clock
    this.#conninfo = conninfo
    for (const host of conninfo.hosts) this.#add(host)
  }

  #add(host: ConninfoHost): void {
    const name = nameOf(host)
    const known = this.#hosts.find((one) => one.name === name)
    if (known && !known.isRemoved) {
      known.weight++
      return
    }
    const conninfo = { ...this.#conninfo, hosts: [host] }
    if (!known) {
      this.#hosts.push(new Host(name, conninfo))
      return
    }
    known.isRemoved = false
    known.weight = 1
    known.blockedUntilMs = 0
  }

  get count(): number {
    return this.#hosts.length
  }

  /** Adds one while connections are in use; named again it gets more weight. */
  add(host: ConninfoHost): void {
    this.#add(host)
  }

  /** From now on it is not picked. @throws CLIENT_HOST when there is no such host, or no other */
  remove(name: string): number {
    const index = this.#hosts.findIndex((one) => one.name === name && !one.isRemoved)
    if (index < 0) throw engineError('CLIENT_HOST', { host: name, reason: 'there is none' })
    if (this.#hosts.filter((one) => !one.isRemoved).length === 1)
      throw engineError('CLIENT_HOST', { host: name, reason: 'it is the last one' })
    this.#host(index).isRemoved = true
    return index
  }

  #host(index: number): Host {
    return this.#hosts[index] as Host
  }

  isRemoved(index: number): boolean {
    return this.#host(index).isRemoved
  }

  name(index: number): string {
    return this.#host(index).name
  }

  /** Reaches that host alone. */
  conninfo(index: number): Conninfo {
    return this.#host(index).conninfo
  }

  /** What a strategy may choose from; when all are blocked, those are asked again. Undefined: all were tried. */
  view(
    tried: ReadonlySet<number>,
    retriesAllDown: number,
    random: Uint64Source,
  ): StrategyView | undefined {
    const now = this.#clock.monotonicMs()
    const there = this.#hosts.flatMap((one, index) =>
      one.isRemoved || tried.has(index) ? [] : [index],
    )
    const sound = there.filter((index) => this.#host(index).blockedUntilMs <= now)
    const candidates = sound.length > 0 ? sound : there
    if (candidates.length === 0) return undefined
    const of = <T>(read: (host: Host) => T) => Object.freeze(this.#hosts.map(read))
    return Object.freeze({
      hosts: of(({ name }) => name),
      candidates: Object.freeze(candidates),
      weights: of(({ weight }) => weight),
      open: of(({ open }) => open),
      inUse: of(({ inUse }) => inUse),
      responseTimesMs: of((host) => this.#believed(host, now)),
      retriesAllDown,
      current: this.#current,
      random,
    })
  }

  #believed({ responseMs, measuredAtMs }: Host, now: number): number {
    if (responseMs === 0) return 0
    return responseMs * 0.5 ** ((now - measuredAtMs) / FORGET_MS)
  }

  picked(index: number): void {
    this.#current = index
    this.#host(index).picks++
  }

  opened(index: number, connectMs: number): void {
    const host = this.#host(index)
    host.open++
    host.connects++
    host.connectMs += (connectMs - host.connectMs) / host.connects
    host.blockedUntilMs = 0
  }

  closed(index: number): void {
    this.#host(index).open--
  }

  used(index: number, change: 1 | -1): void {
    this.#host(index).inUse += change
  }

  failed(index: number, blockMs: number): void {
    this.#host(index).failures++
    this.block(index, blockMs)
  }

  switched(index: number, blockMs: number): void {
    this.#host(index).switches++
    this.block(index, blockMs)
  }

  block(index: number, forMs: number): void {
    this.#host(index).blockedUntilMs = this.#clock.monotonicMs() + forMs
  }

  answered(index: number, ms: number): void {
    const host = this.#host(index)
    host.responseMs = host.responseMs === 0 ? ms : host.responseMs + NEWEST * (ms - host.responseMs)
    host.measuredAtMs = this.#clock.monotonicMs()
  }

  statistics(): HostStatistics[] {
    const now = this.#clock.monotonicMs()
    return this.#hosts.map((host) => ({
      host: host.name,
      weight: host.weight,
      isRemoved: host.isRemoved,
      blockedMs: Math.max(0, host.blockedUntilMs - now),
      open: host.open,
      inUse: host.inUse,
      picks: host.picks,
      failures: host.failures,
      switches: host.switches,
      connectMs: host.connectMs,
      responseMs: host.responseMs,
    }))
  }
}
