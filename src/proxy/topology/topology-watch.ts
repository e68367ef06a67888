/**
 * Follows the epochs of all databases of this process. Each is looked at on a beat and when a server refuses a write as
 * fenced; while nobody knows which side is the truth the database is held, within a bound; once it is known the names of
 * the two databases are exchanged in the configuration in force.
 */
import { randomUUID } from 'node:crypto'
import type { Clock, Timer } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import type { LoadedConfig } from '../../config/loaded-config.js'
import { toEngineError } from '../../errors/engine-error.js'
import type { OpenServer } from '../../pool/definition.js'
import type { Pools } from '../../pool/pool-map.js'
import type { EpochAccess } from '../../session/epoch-access.js'
import {
  DISCOVER_MS,
  FENCE_MARK,
  HEARTBEAT_MS,
  HOLD_MS,
  isLeft,
  isUnsettled,
  successorOf,
  type TopologyRow,
} from '../../topology/epoch.js'
import type { ClientRegistry } from '../clients/client-registry.js'
import { exchangeDatabases, followEpochs } from './exchange-databases.js'
import { Readiness } from './readiness.js'
import type { ReadyMove } from './ready-move.js'
import { placesOf, TopologyLinks } from './topology-links.js'

const fenceMark = Buffer.from(`n${FENCE_MARK}\0`)

/** How long after a look the next one follows while a database is held. */
const LOOK_AGAIN_MS = 25
/** The same where it may be held for good. */
const LOOK_SELDOM_MS = 1000

export interface TopologyWatchOptions {
  readonly pools: Pools
  readonly clients: ClientRegistry
  readonly openServer: OpenServer
  readonly clock: Clock
  readonly log: Log
  readonly version: string
  readonly address: () => { readonly host: string; readonly port: number }
  /** In force; asked only after the start. */
  readonly config: () => LoadedConfig
  /** Makes another configuration, in which other servers are `name`, ready to be put in force. */
  readonly makeReady: (name: string, config: LoadedConfig) => Promise<ReadyMove>
  /** Puts another configuration in force. */
  readonly follow: (config: LoadedConfig, ready?: ReadyMove) => Promise<void>
}

/** One database as SHOW TOPOLOGY tells of it. */
interface TopologyState {
  readonly database: string
  readonly proxyId: string
  readonly epoch: number
  readonly state: 'serving' | 'ready' | 'inactive' | 'held' | 'fenced'
  /** Since it was looked at. */
  readonly ageMs: number
}

/** What was last seen of one database. */
interface Seen {
  row: TopologyRow | undefined
  /** On the monotonic clock. */
  seenMs: number
  /** No sooner is it looked at again. */
  nextMs: number
  isBusy: boolean
  saidRefusal: boolean
  /** The side for whose taking over clients were held in vain. */
  heldFor: string | undefined
}

export class TopologyWatch {
  readonly #options: TopologyWatchOptions
  readonly #id = randomUUID()
  readonly #links: TopologyLinks
  /** By place: names may change. */
  readonly #seen = new Map<string, Seen>()
  readonly #holds = new Map<string, Promise<void>>()
  readonly #access = new Map<string, EpochAccess>()
  /** Databases that a run is about to switch, or has. */
  readonly #moving = new Set<string>()
  readonly #readiness: Readiness<ReadyMove>
  #timer: Timer | undefined
  #isStopped = false

  constructor(options: TopologyWatchOptions) {
    this.#options = options
    const { pools, openServer, version, address, makeReady, log } = options
    this.#readiness = new Readiness({ log, make: makeReady })
    this.#links = new TopologyLinks({
      openServer,
      clock: options.clock,
      mark: () => ({ id: this.#id, processId: process.pid, version, ...address() }),
      guests: (name) =>
        [...pools.users()].find(({ definition }) => definition.database === name)?.definition,
    })
  }

  /** Resolves when every database that answers was looked at once: who is served before that might be served wrongly. */
  async start(): Promise<void> {
    const looks = this.#beat()
    const next = () => {
      this.#timer = this.#options.clock.after(HEARTBEAT_MS, () => {
        void Promise.all(this.#beat())
        next()
      })
    }
    next()
    await Promise.all(looks)
  }

  /** After pools were let on: those whose rows must not be read stay where they are. */
  keepHeld(): void {
    const { pools } = this.#options
    for (const { name } of this.#options.config().databases) {
      if (this.#isUnsettled(name) && !pools.isPaused(name)) void this.#hold(name)
    }
  }

  /** Takes the marks of this process out of the registries. */
  async stop(): Promise<void> {
    this.#isStopped = true
    this.#timer?.cancel()
    this.#readiness.close()
    await this.#links.close()
  }

  /**
   * A configuration that was just read, as the epochs say it: they win over a file that is older, or newer, than a cutover.
   * A lone database has nothing to change names with.
   */
  async asEpochsSay(config: LoadedConfig): Promise<LoadedConfig> {
    if (config.databases.length < 2) return config
    const rows = await this.#links.readAll(config)
    const { config: followed, followed: pairs } = followEpochs(config, rows)
    for (const [name, successor] of pairs) {
      this.#options.log.info('the epoch wins over the file: two databases have changed names', {
        database: name,
        successor,
        epoch: rows.get(successor)?.epoch,
      })
    }
    return followed
  }

  /** What a session is told of one database. */
  accessTo(database: string): EpochAccess {
    const known = this.#access.get(database)
    if (known) return known
    const isMoving = () => this.#moving.has(database)
    const access: EpochAccess = {
      get isMoving() {
        return isMoving()
      },
      mark: fenceMark,
      refused: () => this.#hold(database),
    }
    this.#access.set(database, access)
    return access
  }

  /** Before clients are let on: another side may serve the database by now. */
  async followNow(name: string): Promise<void> {
    if (!this.#options.config().databases.some((one) => one.name === name)) return
    try {
      await this.#decide(name)
    } catch (error) {
      const facts = { database: name, reason: toEngineError(error).message }
      this.#options.log.warn('the epoch could not be read', facts)
    }
  }

  *states(): Iterable<TopologyState> {
    const nowMs = this.#options.clock.monotonicMs()
    for (const { name: database } of this.#options.config().databases) {
      const { row, seenMs } = this.#seenOf(database)
      if (!row) continue
      const state = this.#holds.has(database) ? 'held' : this.#standingOf(database, row)
      const proxyId = `${this.#id}:${database}`
      yield { database, proxyId, epoch: row.epoch, state, ageMs: nowMs - seenMs }
    }
  }

  #standingOf(database: string, { active, fenced }: TopologyRow): TopologyState['state'] {
    if (!active) return fenced ? 'fenced' : 'inactive'
    return this.#readiness.isReady(database) ? 'ready' : 'serving'
  }

  #beat(): Promise<void>[] {
    const config = this.#options.config()
    this.#links.keepOnly(config)
    const nowMs = this.#options.clock.monotonicMs()
    const looks: Promise<void>[] = []
    for (const { name } of config.databases) {
      const seen = this.#seenOf(name)
      if (this.#isStopped || seen.isBusy || nowMs < seen.nextMs) continue
      seen.isBusy = true
      const look = this.#look(name, seen).finally(() => {
        seen.isBusy = false
      })
      looks.push(look)
    }
    return looks
  }

  #seenOf(name: string): Seen {
    const place = placesOf(this.#options.config(), name)
    const known = this.#seen.get(place)
    if (known) return known
    const seen: Seen = {
      row: undefined,
      seenMs: 0,
      nextMs: Number.NEGATIVE_INFINITY,
      isBusy: false,
      saidRefusal: false,
      heldFor: undefined,
    }
    this.#seen.set(place, seen)
    return seen
  }

  async #look(name: string, seen: Seen): Promise<void> {
    const { clock, log } = this.#options
    try {
      let row = await this.#read(name, seen)
      if (!row) {
        seen.nextMs = clock.monotonicMs() + this.#discoverMs(name)
        return
      }
      const link = this.#links.of(this.#options.config(), name)
      const neighbours = this.#links.neighbours(this.#options.config(), name)
      const isNew = await link.beat(name, row.epoch, neighbours)
      // What was read before a cutover knew of us may be over.
      if (isNew) row = await this.#read(name, seen)
      if (link.refusal !== undefined && !seen.saidRefusal) {
        seen.saidRefusal = true
        const facts = { database: name, reason: link.refusal }
        log.warn('this proxy cannot register: a cutover would not know of it', facts)
      }
      if (!row) return
      const config = this.#options.config()
      void this.#readiness.look(name, row, config, () => this.#links.readAll(config))
      if (isUnsettled(row)) {
        void this.#hold(name)
        return
      }
      // Held once; after that it is only looked at, until it is decided.
      if (!isLeft(name, row)) return
      if (seen.heldFor === row.truthSide) await this.#decide(name)
      else void this.#hold(name)
    } catch (error) {
      seen.nextMs = clock.monotonicMs() + DISCOVER_MS
      const facts = { database: name, reason: toEngineError(error).message }
      log.debug('the epoch could not be read', facts)
    }
  }

  /** A database that nobody uses is not asked again and again. */
  #discoverMs(name: string): number {
    for (const { client } of this.#options.clients.all())
      if (client.database === name) return DISCOVER_MS
    return 5 * DISCOVER_MS
  }

  async #read(name: string, seen: Seen): Promise<TopologyRow | undefined> {
    const row = await this.#links.read(this.#options.config(), name)
    seen.row = row
    if (row?.move === undefined) this.#moving.delete(name)
    else this.#moving.add(name)
    seen.seenMs = this.#options.clock.monotonicMs()
    return row
  }

  #hold(name: string): Promise<void> {
    const held = this.#holds.get(name)
    if (held !== undefined) return held
    const hold = this.#holdNow(name).finally(() => this.#holds.delete(name))
    this.#holds.set(name, hold)
    return hold
  }

  async #holdNow(name: string): Promise<void> {
    const { pools, clock, log } = this.#options
    let isOurs = false
    const pause = (): void => {
      if (pools.isPaused(name)) return
      isOurs = true
      void pools.pause({ database: name })
    }
    pause()
    const seen = this.#seenOf(name)
    const untilMs = clock.monotonicMs() + HOLD_MS
    log.info('a database is fenced: its clients are held', { database: name })
    try {
      for (;;) {
        const outcome = await this.#decide(name).catch(() => 'open')
        seen.heldFor = undefined
        if (this.#isStopped || (outcome !== 'open' && !this.#isUnsettled(name))) return
        const isLate = clock.monotonicMs() >= untilMs
        if (isLate && !this.#isUnsettled(name)) break
        await clock.sleep(isLate ? LOOK_SELDOM_MS : LOOK_AGAIN_MS)
        // Somebody may have let it on.
        if (this.#isUnsettled(name)) pause()
      }
      seen.heldFor = seen.row?.truthSide
      const hint = 'pgshard reshard resume'
      log.error('nobody says which side is the truth: writes fail', { database: name, hint })
    } finally {
      if (isOurs) pools.resume({ database: name })
    }
  }

  #isUnsettled(name: string): boolean {
    const { row } = this.#seenOf(name)
    return row !== undefined && isUnsettled(row)
  }

  async #decide(name: string): Promise<'serving' | 'followed' | 'open'> {
    const config = this.#options.config()
    // While something is ready the answer is known to be wanted: both sides are asked at once.
    const all = this.#readiness.isReady(name) ? this.#links.readAll(config) : undefined
    const row = await this.#read(name, this.#seenOf(name))
    if (!row) return 'open'
    if (!isLeft(name, row)) return 'serving'
    const others = await (all ?? this.#links.readAll(config))
    const successor = successorOf(name, row, others)
    if (successor === undefined) return 'open'
    // A reload may have been faster.
    if (this.#options.config() !== config) return 'open'
    const ready = this.#readiness.take(name, config, successor)
    try {
      await this.#options.follow(exchangeDatabases(config, name, successor), ready)
    } finally {
      ready?.close()
    }
    const epoch = others.get(successor)?.epoch
    this.#options.log.info('a database is served by other servers now', { database: name, epoch })
    return 'followed'
  }
}
