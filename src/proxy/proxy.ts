/**
 * The composition root: configuration → pools, planners, sessions, console; and the life of the whole: start, reload, drain, end.
 * Everything else is told what it needs; nothing below imports this.
 */
import type { ConsoleControl } from '../admin/move-control.js'
import type { ProxyControl } from '../admin/proxy-control.js'
import type { ProxyView } from '../admin/proxy-view.js'
import { UserTable } from '../auth/user-table.js'
import { OneAtATime } from '../base/one-at-a-time.js'
import type { LoadedConfig } from '../config/loaded-config.js'
import type { ByteSocket } from '../net/byte-socket.js'
import { type Listener, type ListenOptions, listen } from '../net/listener.js'
import type { PoolDefinition } from '../pool/definition.js'
import { Pools } from '../pool/pool-map.js'
import type { SessionEnvironment } from '../session/environment.js'
import { Cancels } from './clients/cancels.js'
import { ClientRegistry } from './clients/client-registry.js'
import { drainClients } from './clients/drain-clients.js'
import { ListenHubs } from './clients/listen-hubs.js'
import { openListeners } from './clients/open-listeners.js'
import { makeControl } from './console/control.js'
import { withMoves } from './console/late-moves.js'
import { noStanding } from './console/standing.js'
import { makeView } from './console/view.js'
import { definePools } from './databases/define-pools.js'
import { DatabaseKnowledge } from './databases/knowledge.js'
import { checkShards } from './databases/start-checks.js'
import { TwoPhaseCommits } from './databases/two-phase-commits.js'
import { DeadlockWatch } from './deadlocks/deadlock-watch.js'
import { alone, ProcessIds, type WorkerPlace } from './fleet.js'
import { type InForce, tlsToClients } from './in-force.js'
import { AuthQueries } from './logins/auth-queries.js'
import { Guests } from './logins/guests.js'
import { prepareLogins } from './logins/prepare-logins.js'
import { drainMoved, forgetBefore, movedDatabases, prepareAll } from './move-shards.js'
import { insideView } from './observe/inside.js'
import { Observed } from './observe/observed.js'
import type { ProxyOptions } from './proxy-options.js'
import { reportedReload } from './reported-reload.js'
import { makeEnvironment } from './session-environment.js'
import { Followers } from './topology/followers.js'
import { ReadyMove } from './topology/ready-move.js'

/** A configuration that is ready: everything that can fail has been done. One of the two must be called. */
export interface PreparedReload {
  /** Puts it in force. Resolves when the shards have been asked. */
  commit(): Promise<void>
  /** The old configuration stays. */
  abort(): void
}

export interface ServingProxy {
  readonly host: string
  readonly port: number
  /** Resolves with true when drained, false when clients had to be cut. */
  readonly ended: Promise<boolean>
  /** Stops accepting, lets transactions finish up to `shutdown_timeout`; a second call, or `now`, cuts. */
  shutdown(now?: boolean): void
  /** @throws ADMIN_RELOAD_FAILED; the old configuration stays in force */
  reload(settings?: ReadonlyMap<string, string>): Promise<void>
  /**
   * The first half of a reload. Where shards change, the database stands still until the second half.
   * @throws what is wrong with the configuration, PROXY_LAYOUT_BUSY
   */
  prepareReload(config: LoadedConfig): Promise<PreparedReload>
  /** Of this process alone. */
  readonly view: ProxyView
  readonly control: ProxyControl
  readonly cancels: Cancels
  /** A statement in another worker changed the schema of a database. */
  schemaChanged(database: string): void
}

/** How long a start waits to hear which databases must not be served yet: one that stands alone cannot change names. */
const FIRST_LOOK_MS = { alone: 1000, several: 10_000 }

/** @throws NET_LISTEN_FAILED, NET_TLS_MATERIAL, FILE_MISSING */
export async function startProxy(options: ProxyOptions): Promise<ServingProxy> {
  const running = new RunningProxy(options)
  await running.start()
  return running
}

class RunningProxy implements ServingProxy {
  readonly ended: Promise<boolean>
  readonly #options: ProxyOptions
  readonly view: ProxyView
  readonly control: ProxyControl
  readonly cancels: Cancels
  readonly #place: WorkerPlace
  readonly #clients: ClientRegistry
  readonly #pools: Pools
  readonly #environment: SessionEnvironment
  readonly #twoPhase: TwoPhaseCommits
  readonly #deadlocks: DeadlockWatch
  readonly #guests: Guests
  readonly #authQueries: AuthQueries
  readonly #listenHubs: ListenHubs
  readonly #followers: Followers
  readonly #observed: Observed
  #inForce: InForce
  #listeners: Listener[] = []
  #isDraining = false
  #cutNow = new AbortController()
  #end!: (drained: boolean) => void
  readonly #reloads = new OneAtATime()

  constructor(options: ProxyOptions) {
    this.#options = options
    this.ended = new Promise((resolve) => {
      this.#end = resolve
    })
    const { clock, log, random, openServer, config, fleet } = options
    const place = fleet ?? alone
    this.#place = place
    const processIds = new ProcessIds(place, fleet?.keySecret)
    this.#clients = new ClientRegistry(processIds)
    const forward = fleet?.cancel.bind(fleet)
    const known = { clients: this.#clients, processIds, place }
    this.cancels = new Cancels({ ...known, ...(forward ? { forward } : {}) })
    const roleCheckTimeoutMs = config.general.lsnCheckTimeoutMs
    this.#pools = new Pools({ clock, log, random, openServer, roleCheckTimeoutMs })
    if (options.names) options.names.onChange = (host) => this.#pools.hostMoved(host)
    this.#inForce = this.#make(config)
    const general = () => this.#inForce.config.general
    const counted = { pools: this.#pools, clients: this.#clients }
    this.#observed = new Observed({ ...counted, clock, general })
    const parts = {
      ...counted,
      observed: this.#observed,
      standing: noStanding(),
      inside: insideView({ fleet, names: options.names, inForce: () => this.#inForce }),
      ...{ cancels: this.cancels, place },
      isDraining: () => this.#isDraining,
    }
    this.#twoPhase = this.#makeTwoPhase()
    this.#deadlocks = this.#watchDeadlocks()
    const askers = { ...parts, clock, log, openServer, inForce: () => this.#inForce }
    this.#guests = new Guests(askers)
    this.#authQueries = new AuthQueries(askers)
    this.#listenHubs = new ListenHubs({ ...askers, general })
    this.#followers = this.#makeFollowers()
    this.view = makeView({
      ...parts,
      listenHubs: this.#listenHubs,
      ...{ twoPhase: this.#twoPhase, topology: this.#followers.topology },
      version: options.version,
      clock,
      startedAtMs: clock.monotonicMs(),
      config: () => this.#inForce.config,
    })
    this.control = makeControl({
      ...parts,
      ...{ clock, openServer, inForce: () => this.#inForce },
      reload: (settings) => this.reload(settings),
      followEpoch: (database) => this.#followers.topology.followNow(database),
      keepHeld: () => this.#followers.topology.keepHeld(),
      shutdown: () => this.shutdown(),
    })
    this.#environment = makeEnvironment({
      ...parts,
      ...{ clock, log, random },
      view: () => fleet?.look() ?? this.view,
      control: this.#console(),
      ...(fleet ? { saltSecret: fleet.saltSecret } : {}),
      tellSchemaChanged: (database) => fleet?.schemaChanged(database),
      inForce: () => this.#inForce,
      twoPhase: this.#twoPhase,
      ...{ deadlocks: this.#deadlocks, topology: this.#followers.topology },
      guests: this.#guests,
      authQueries: this.#authQueries,
      listenHubs: this.#listenHubs,
    })
  }

  #makeTwoPhase(): TwoPhaseCommits {
    const { clock, log, openServer, onTwoPhaseStep: onStep } = this.#options
    const waitMs = () => this.#inForce.config.general.twoPhaseWaitMs
    return new TwoPhaseCommits({ pools: this.#pools, openServer, clock, log, waitMs, onStep })
  }

  #watchDeadlocks(): DeadlockWatch {
    const { clock, log, openServer } = this.#options
    const waitMs = () => this.#inForce.config.general.crossShardDeadlockMs
    return new DeadlockWatch({ openServer, clock, log, waitMs })
  }

  #console(): ConsoleControl {
    const { clock, fleet } = this.#options
    return withMoves(fleet?.control ?? this.control, {
      ...{ clock, config: () => this.#inForce.config },
      address: () => (fleet ? { host: '', port: 0, ...this.#options } : this),
    })
  }

  #makeFollowers(): Followers {
    const { clock, log, openServer, version } = this.#options
    return new Followers({
      ...{ clock, log, openServer, version, pools: this.#pools, clients: this.#clients },
      address: () => ({ host: this.host, port: this.port }),
      config: () => this.#inForce.config,
      makeReady: (name, config) => this.#makeReady(name, config),
      follow: (config, ready) => this.#reloads.run(() => this.#follow(config, ready)),
    })
  }

  /** Another side serves a database by now. */
  async #follow(config: LoadedConfig, ready?: ReadyMove): Promise<void> {
    const { commit } = await this.#prepare(config, ready)
    // Its shards are asked after that, while clients go on.
    void commit().catch(() => undefined)
  }

  #makeReady(name: string, config: LoadedConfig): Promise<ReadyMove> {
    const { next, definitions } = this.#plan(config)
    const moved = movedDatabases(this.#inForce, next)
    return ReadyMove.make(name, { config, definitions, moved, pools: this.#pools })
  }

  #plan(config: LoadedConfig): { next: InForce; definitions: PoolDefinition[] } {
    const next = this.#make(config)
    return {
      next,
      definitions: [...definePools(config), ...this.#guests.definitions(config, next)],
    }
  }

  get host(): string {
    return this.#listeners[0]?.host ?? ''
  }

  get port(): number {
    return this.#listeners[0]?.port ?? 0
  }

  async start(): Promise<void> {
    const { log, acceptClient, fleet } = this.#options
    const config = await this.#followers.asTold(this.#options.config)
    if (config !== this.#options.config) this.#inForce = this.#make(config)
    this.#pools.apply(definePools(config))
    for (const warning of config.warnings) log.warn(warning)
    const onSocket = (socket: ByteSocket) => void acceptClient(socket, this.#environment)
    // First of all, so that a port in use is said before anything is opened.
    const held: ByteSocket[] = []
    let isReady = false
    const accept = (socket: ByteSocket) => (isReady ? onSocket(socket) : void held.push(socket))
    if (fleet) this.#listeners = await fleet.openListeners(accept)
    else {
      const open = (where: ListenOptions) => listen(where, accept)
      this.#listeners = await openListeners(config, this.#options, open)
    }
    this.#pools.start()
    await this.#learn()
    // What a dead process left is for one process to end.
    if (this.#place.number === 0) this.#twoPhase.start()
    await this.#firstLooks(config)
    isReady = true
    for (const socket of held) onSocket(socket)
  }

  async #firstLooks(config: LoadedConfig): Promise<void> {
    const over = new AbortController()
    const longest = FIRST_LOOK_MS[config.databases.length < 2 ? 'alone' : 'several']
    await Promise.race([
      this.#followers.start(),
      this.#options.clock.sleep(longest, over.signal).catch(() => undefined),
    ])
    over.abort()
  }

  reload(settings?: ReadonlyMap<string, string>): Promise<void> {
    // A second RELOAD reads files that may have changed since.
    return this.#reloads.run(() => this.#reload(settings))
  }

  shutdown(now = false): void {
    if (this.#isDraining || now) this.#cutNow.abort()
    if (this.#isDraining) return
    this.#isDraining = true
    void this.#drain()
  }

  async #reload(settings?: ReadonlyMap<string, string>): Promise<void> {
    const loadAgain = () => this.#options.loadAgain(settings)
    const sources = { ...this.#options, loadAgain }
    const prepared = await reportedReload(sources, (config) => this.prepareReload(config))
    await prepared.commit()
  }

  /** After a new configuration is in force. */
  async #settle(): Promise<void> {
    await this.#learn()
    // Settings of planners may have changed too.
    for (const known of this.#inForce.knowledge.values()) void known.refresh()
    for (const { client } of this.#clients.all()) {
      const isGone =
        !this.#environment.isAdminDatabase(client.database) &&
        !this.#inForce.users.find(client.user, client.database) &&
        !this.#guests.find(client.user, client.database)
      if (isGone) client.end(false)
    }
  }

  /**
   * Where shards change, the database is drained first and its new plans are ready before: then pools and plans are
   * exchanged in one turn, so that no statement is routed by the one and run on the other.
   */
  async prepareReload(config: LoadedConfig): Promise<PreparedReload> {
    return this.#prepare(await this.#followers.asTold(config))
  }

  async #prepare(config: LoadedConfig, ready?: ReadyMove): Promise<PreparedReload> {
    const { next, definitions } = this.#plan(config)
    const moved = movedDatabases(this.#inForce, next)
    const readings = await prepareAll(moved, { config, definitions }, await ready?.readings())
    const resume = await drainMoved(moved, this.#pools, this.#options.clock, config.general)
    const exchange = () => {
      try {
        this.#pools.apply(definitions)
        for (const [known, reading] of readings) known.install(reading)
        const before = this.#inForce
        this.#inForce = next
        this.#guests.keepOnlyAllowed()
        this.#authQueries.reset()
        this.#twoPhase.forget()
        forgetBefore(before, next)
      } finally {
        resume()
      }
    }
    return {
      commit: () => {
        exchange()
        return this.#settle()
      },
      abort: resume,
    }
  }

  schemaChanged(database: string): void {
    const known = this.#inForce.knowledge.get(database)
    known?.statements.schemaChanged()
    void known?.refresh()
  }

  /** Everything that can fail is made here, before anything is exchanged. */
  #make(config: LoadedConfig): InForce {
    definePools(config)
    const knowledge = new Map<string, DatabaseKnowledge>()
    for (const { name } of config.databases) {
      const sharding = config.sharding.get(name)
      if (!sharding) continue
      knowledge.set(name, this.#inForce?.knowledge.get(name) ?? this.#know(name, sharding))
    }
    return { config, users: new UserTable(config.users), knowledge, tls: tlsToClients(config) }
  }

  #know(name: string, sharding: DatabaseKnowledge['sharding']): DatabaseKnowledge {
    const { clock, log, openServer, knowledge } = this.#options
    const pools = () => {
      const user = [...this.#pools.users()].find(({ definition }) => definition.database === name)
      return user
    }
    return new DatabaseKnowledge(name, sharding, pools, { clock, log, openServer, ...knowledge })
  }

  async #learn(): Promise<void> {
    void prepareLogins(this.#inForce.config, this.#options.fleet?.saltSecret)
    const { knowledge } = this.#inForce
    await Promise.all([
      checkShards(this.#pools, knowledge, this.#options),
      ...[...this.#pools.users()].map((user) => this.#twoPhase.learn(user)),
      ...[...knowledge.values()].filter((one) => !one.isReady).map((one) => one.refresh()),
    ])
  }

  async #drain(): Promise<void> {
    const { log, clock } = this.#options
    log.info('shutting down', { clients: this.#clients.size })
    await Promise.all(this.#listeners.map((listener) => listener.close()))
    const drained = await drainClients({
      ...{ log, clock, clients: this.#clients, cutNow: this.#cutNow.signal },
      general: this.#inForce.config.general,
    })
    for (const known of this.#inForce.knowledge.values()) known.close()
    this.#observed.stop()
    this.#twoPhase.stop()
    this.#deadlocks.stop()
    this.#listenHubs.close()
    await Promise.race([this.#followers.stop(), clock.sleep(1000)])
    this.#pools.goOffline()
    await Promise.race([this.#pools.whenDrained(), clock.sleep(1000)])
    await this.#options.beforeEnd?.()
    log.info('ended', { drained })
    this.#end(drained)
  }
}
