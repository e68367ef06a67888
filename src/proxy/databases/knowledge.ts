/**
 * What the proxy knows of one database beside its pools: the planner, the catalogue read from shard 0, where COPY rows go.
 * Read at start, again when a statement changed the schema, again while it fails; RELOAD prepares a reading of the new
 * shards and installs it in the same turn as their pools. Sessions hold `planner` and `copyTarget`, which always speak
 * for the newest reading.
 */
import type { Clock, Timer } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import type { Catalog } from '../../catalog/catalog.js'
import type { ShardDifference } from '../../catalog/read-habits.js'
import { engineError, toEngineError } from '../../errors/engine-error.js'
import type { KeptPlan, PlannedQuery, QueryPlanner } from '../../plan/plan.js'
import type { OpenServer } from '../../pool/definition.js'
import type { UserPools } from '../../pool/user-pools.js'
import { listConstraints } from '../../routing/constraint-list.js'
import type { ServerConnection } from '../../server/server-connection.js'
import type { ServerTarget } from '../../server/server-target.js'
import { StatementRegistry } from '../../server/shared-statement.js'
import type { CopyTarget, DatabaseAccess } from '../../session/environment.js'
import { placeDefault } from '../../sharding/default-key.js'
import { makeShardMap, type ShardMap } from '../../sharding/shard-map.js'
import type { ShardingConfig } from '../../sharding/sharded-table.js'
import { withPrimary } from './ask-primary.js'
import { firstThatAnswers } from './first-that-answers.js'
import type { ShardsCompared } from './home-numbers.js'
import { fingerprintBesidesSequences, fingerprintSql, SchemaWatch } from './schema-watch.js'

/** Rows of a statement, as text. */
export type AskShard = (sql: string) => Promise<readonly (readonly (string | null)[])[]>

export interface KnowledgeSources {
  readonly clock: Clock
  readonly log: Log
  readonly openServer: OpenServer
  makePlanner(
    sharding: ShardingConfig,
    catalog: Catalog | undefined,
    database: string,
  ): Promise<QueryPlanner>
  readCatalog(ask: AskShard): Promise<Catalog>
  /** Learns how the shards number what users made, and what they do otherwise than shard 0. */
  readNumbers(pools: UserPools, openServer: OpenServer): Promise<ShardsCompared>
}

const RETRY_MS = 5000
const PREPARE_MS = 5000

/** A reading of shards that will be in force soon. */
export interface ReadingAhead {
  readonly reading: Reading
  /** Nothing that it goes by has changed since. */
  isCurrent(): Promise<boolean>
  close(): void
}

/** Made by `prepare`, put in force by `install`. */
export interface Reading {
  readonly sharding: ShardingConfig
  readonly catalog: Catalog | undefined
  readonly planner: QueryPlanner
  readonly shardMap: ShardMap
}

export class DatabaseKnowledge {
  readonly name: string
  readonly statements = new StatementRegistry()
  readonly planner: QueryPlanner
  readonly copyTarget: DatabaseAccess['copyTarget']
  /** What shards do otherwise than shard 0, so that statements over several would not answer as one PostgreSQL. */
  differences: readonly ShardDifference[] = []
  readonly #sources: KnowledgeSources
  #hasSaidConstraints = false
  readonly #searchPaths = new Map<string, readonly string[]>()
  readonly #isolations = new Map<string, string>()
  #pools: () => UserPools | undefined
  #sharding: ShardingConfig
  #reading: Reading | undefined
  #generation = 0
  /** Readings that were asked for, and which of them the newest reading answers. */
  #asked = 0
  #seen = -1
  readonly #watch: SchemaWatch
  #failure = 'it was not read'
  #serverVersion: number | undefined
  #running: Promise<void> | undefined
  #again = false
  #retry: Timer | undefined
  #isClosed = false

  constructor(
    name: string,
    sharding: ShardingConfig,
    pools: () => UserPools | undefined,
    sources: KnowledgeSources,
  ) {
    this.name = name
    this.#sharding = sharding
    this.#pools = pools
    this.#sources = sources
    this.planner = new LivePlanner(this)
    this.#watch = new SchemaWatch({
      clock: sources.clock,
      look: () => this.#fingerprint(),
      changed: () => void this.refresh(),
    })
    this.copyTarget = (table, searchPath) => this.#copyTarget(table, searchPath)
  }

  get sharding(): ShardingConfig {
    return this.#sharding
  }

  get generation(): number {
    return this.#generation
  }

  /** False from a change of the schema until it has been read, and when it was not looked at for some seconds. */
  get isCurrent(): boolean {
    return this.#seen === this.#asked && this.#watch.isFresh
  }

  /** The planner in force. @throws PROXY_NOT_READY */
  get inForce(): QueryPlanner {
    return (this.#reading ?? this.#known()).planner
  }

  /** Of the server that was asked last, as `server_version_num`; undefined before. */
  get serverVersion(): number | undefined {
    return this.#serverVersion
  }

  get isReady(): boolean {
    return this.#reading !== undefined
  }

  /** @throws PROXY_NOT_READY */
  assertReady(): void {
    this.#known()
  }

  /** search_path of a fresh session of this user. */
  searchPathOf(user: string): readonly string[] {
    return this.#searchPaths.get(user) ?? ['$user', 'public']
  }

  /** default_transaction_isolation of a fresh session of this user. */
  isolationOf(user: string): string {
    return this.#isolations.get(user) ?? 'read committed'
  }

  /** What a fresh session of this user has: ALTER ROLE and ALTER DATABASE may have set it. */
  noteDefaults(user: string, searchPath: readonly string[], isolation: string): void {
    this.#searchPaths.set(user, searchPath)
    this.#isolations.set(user, isolation)
  }

  /** Reads the catalogue; one reading at a time, a call during one makes another follow, which it waits for. */
  refresh(): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    this.#asked++
    if (this.#running !== undefined) {
      this.#again = true
      // the one that runs may have begun before what the caller wants to see
      return this.#running.then(() => this.#running)
    }
    this.#running = this.#read().finally(() => {
      this.#running = undefined
      if (!this.#again) return
      this.#again = false
      void this.refresh()
    })
    return this.#running
  }

  /** A reading of shards that are not in force yet, on a connection of its own. @throws what opening and reading throw */
  async prepare(sharding: ShardingConfig, ofShard0: readonly ServerTarget[]): Promise<Reading> {
    if (sharding.shardCount === 1) return this.#make(sharding, undefined)
    return firstThatAnswers(this.name, ofShard0, async (target) => {
      const server = await this.#sources.openServer(target, { timeoutMs: PREPARE_MS })
      try {
        return await this.#make(sharding, await this.#catalogOf(server))
      } finally {
        server.close()
      }
    })
  }

  /** The same, with its connection kept to ask whether it still holds. */
  async readAhead(
    sharding: ShardingConfig,
    ofShard0: readonly ServerTarget[],
  ): Promise<ReadingAhead> {
    return firstThatAnswers(this.name, ofShard0, async (target) => {
      const server = await this.#sources.openServer(target, { timeoutMs: PREPARE_MS })
      try {
        const before = await fingerprintOf(server, fingerprintBesidesSequences)
        const catalog = sharding.shardCount === 1 ? undefined : await this.#catalogOf(server)
        const reading = await this.#make(sharding, catalog)
        const isCurrent = async () =>
          (await fingerprintOf(server, fingerprintBesidesSequences)) === before
        return { reading, isCurrent, close: () => server.close() }
      } catch (error) {
        server.close()
        throw error
      }
    })
  }

  install(reading: Reading): void {
    this.#sharding = reading.sharding
    this.#reading = reading
    this.#generation++
  }

  close(): void {
    this.#isClosed = true
    this.#retry?.cancel()
  }

  async #read(): Promise<void> {
    const sharding = this.#sharding
    if (sharding.shardCount > 1 || this.#reading) return this.#readCatalog(sharding)
    // One shard is routed without it; what may be pipelined, and what taints, is known a little later
    this.install(await this.#make(sharding, undefined))
    this.#again = true
  }

  async #readCatalog(sharding: ShardingConfig): Promise<void> {
    this.#retry?.cancel()
    const asked = this.#asked
    try {
      const reading = await this.#make(sharding, await this.#currentCatalog(0))
      const isComplete = await this.#readNumbers(sharding)
      // A RELOAD that came meanwhile has brought its own.
      if (this.#sharding !== sharding) return
      this.install(reading)
      if (!isComplete) this.#compareLater(sharding)
      this.#seen = asked
      this.#sources.log.debug('the schema was read', { database: this.name })
      this.#sayConstraints(reading)
    } catch (error) {
      this.#failure = toEngineError(error).message
      const facts = { database: this.name, error: this.#failure }
      if (sharding.shardCount === 1) this.#sources.log.debug('the schema could not be read', facts)
      else this.#sources.log.warn('the schema of a sharded database could not be read', facts)
      if (!this.#reading) await this.#readProvisionally(sharding)
      this.#readAgainLater()
    }
  }

  /** Once: tables whose constraints no shard can keep, so that writes to them are refused. */
  #sayConstraints({ catalog, sharding }: Reading): void {
    if (this.#hasSaidConstraints || !catalog || sharding.shardCount === 1) return
    this.#hasSaidConstraints = true
    for (const { text, refuses } of listConstraints(catalog, sharding)) {
      if (refuses) this.#sources.log.warn(text, { database: this.name })
    }
  }

  #readAgainLater(): void {
    if (this.#isClosed) return
    this.#retry = this.#sources.clock.after(RETRY_MS, () => void this.refresh())
  }

  /** A shard was down: the plans need not be made again for it. */
  #compareLater(sharding: ShardingConfig): void {
    if (this.#isClosed || this.#sharding !== sharding) return
    this.#retry = this.#sources.clock.after(RETRY_MS, () => {
      void this.#readNumbers(sharding).then(
        (isComplete) => isComplete || this.#compareLater(sharding),
        () => this.#compareLater(sharding),
      )
    })
  }

  /** One shard is told as it is. */
  async #readNumbers(sharding: ShardingConfig): Promise<boolean> {
    const pools = this.#pools()
    if (sharding.shardCount === 1 || !pools) return true
    const compared = await this.#sources.readNumbers(pools, this.#sources.openServer)
    this.#noteDifferences(compared.differences)
    return compared.isComplete
  }

  #noteDifferences(differences: readonly ShardDifference[]): void {
    const isKnown = JSON.stringify(this.differences) === JSON.stringify(differences)
    this.differences = differences
    if (isKnown) return
    for (const { name, shard, value, home } of differences) {
      const facts = { database: this.name, shard, here: value, 'on shard 0': home }
      this.#sources.log.warn(`a shard has another ${name} than shard 0`, facts)
    }
  }

  /** Shard 0 is down at the start: another knows the sharded tables too, and lets the others work until shard 0 answers. */
  async #readProvisionally(sharding: ShardingConfig): Promise<void> {
    for (let shard = 1; shard < sharding.shardCount; shard++) {
      try {
        const reading = await this.#make(sharding, await this.#currentCatalog(shard))
        if (this.#sharding === sharding && !this.#reading) this.install(reading)
        return
      } catch {
        // Said when the shard was asked at the start.
      }
    }
  }

  #currentCatalog(shard: number): Promise<Catalog | undefined> {
    const pools = this.#pools()
    if (!pools) throw engineError('PROXY_NO_DATABASE', { database: this.name })
    const { openServer } = this.#sources
    return withPrimary(pools, shard, openServer, async (server) => {
      this.#serverVersion = server.serverVersion
      const fingerprint = await fingerprintOf(server)
      const catalog = await this.#catalogOf(server)
      if (shard === 0) this.#watch.note(fingerprint)
      return catalog
    })
  }

  async #fingerprint(): Promise<string> {
    const pools = this.#pools()
    if (!pools || this.#isClosed) throw engineError('PROXY_NO_DATABASE', { database: this.name })
    return withPrimary(pools, 0, this.#sources.openServer, (server) => fingerprintOf(server))
  }

  #catalogOf(server: ServerConnection): Promise<Catalog> {
    return this.#sources.readCatalog(async (sql) => (await server.query(sql)).at(-1)?.rows ?? [])
  }

  async #make(sharding: ShardingConfig, catalog: Catalog | undefined): Promise<Reading> {
    const planner = await this.#sources.makePlanner(sharding, catalog, this.name)
    return { sharding, catalog, planner, shardMap: makeShardMap(sharding) }
  }

  #known(): Reading {
    if (this.#reading) return this.#reading
    throw engineError('PROXY_NOT_READY', { database: this.name, reason: this.#failure })
  }

  #copyTarget(
    table: { schema?: string; name: string },
    searchPath: readonly string[],
  ): CopyTarget | undefined {
    const { catalog, shardMap } = this.#known()
    const relation = catalog?.find(table.schema, table.name, searchPath)
    if (!relation) return undefined
    const columns = relation.columns.filter((one) => !one.generated).map((one) => one.name)
    const top = catalog!.rootOf(relation)
    const kind = shardMap.tableOf(top.schema, top.name, (column) =>
      top.columns.some((one) => one.name === column),
    )
    if (kind.kind === 'reference') return { kind: 'reference', columns }
    if (kind.kind === 'unsharded') return { kind: 'unsharded', columns, shard: kind.shard }
    const key = relation.columns.find((one) => one.name === kind.table.column)
    const placer = shardMap.placerOf(kind.table, key?.typmod)
    const placesDefault = () => key && placeDefault(key, placer)
    return { kind: 'sharded', columns, keyColumn: kind.table.column, placer, placesDefault }
  }
}

const fingerprintOf = async (server: ServerConnection, sql = fingerprintSql): Promise<string> =>
  (await server.query(sql)).at(-1)?.rows[0]?.[0] ?? ''

/** Asks the planner in force at each call. */
class LivePlanner implements QueryPlanner {
  readonly #known: DatabaseKnowledge

  constructor(known: DatabaseKnowledge) {
    this.#known = known
  }

  get shardCount(): number {
    return this.#known.sharding.shardCount
  }

  get generation(): number {
    return this.#known.generation
  }

  get isCurrent(): boolean {
    return this.#known.isCurrent
  }

  kept(): Iterable<KeptPlan> {
    return this.#known.isReady ? (this.#known.inForce.kept?.() ?? []) : []
  }

  plan(sql: string): PlannedQuery {
    return this.#known.inForce.plan(sql)
  }
}
