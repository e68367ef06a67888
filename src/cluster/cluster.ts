/**
 * Real PostgreSQL servers on this machine: N shards, each a primary with R streaming replicas.
 * Start makes, restarts or adopts; stop, status and destroy work from any process, also after the
 * one that started the servers has died. A replica begins as a copy of the primary's directory
 * from before the primary's first start, so that no base backup is needed.
 */
import { existsSync, rmdirSync, rmSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { type Clock, systemClock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { initializeAll, primariesOf, type Site, startAll } from './bring-up.js'
import { urlOf, writeClusterFiles } from './cluster-files.js'
import {
  type ClusterState,
  makeDirectory,
  readState,
  requireState,
  stateFile,
  writeState,
} from './cluster-state.js'
import { withLock } from './directory-lock.js'
import { stopInstance } from './instance.js'
import { askInstance } from './instance-query.js'
import {
  binariesOf,
  checkShape,
  choosePorts,
  instanceOf,
  planCluster,
  socketDirectory,
  type Wanted,
} from './plan-cluster.js'
import { findPostmaster } from './postmaster.js'
import { SUPERUSER } from './template.js'

export interface StartOptions extends Wanted {
  directory: string
  /** Is told in words what was done beyond the ordinary. */
  onNote?: ((note: string) => void) | undefined
  clock?: Clock | undefined
}

export interface ClusterServer {
  name: string
  shard: number
  role: 'primary' | 'replica'
  port: number
  url: string
  pid: number | undefined
  dataDirectory: string
  logFile: string
}

export interface Cluster {
  directory: string
  version: string
  database: string
  user: string
  password: string | undefined
  servers: ClusterServer[]
  /** pgshard.env, pgdog.toml and users.toml. */
  files: string[]
}

const describe = (directory: string, state: ClusterState): Cluster => ({
  directory,
  version: state.version,
  database: state.database,
  user: SUPERUSER,
  password: state.password,
  servers: state.instances.map((server) => ({
    ...server,
    url: urlOf(state, server.port),
    pid: findPostmaster(server.dataDirectory)?.pid,
    logFile: instanceOf(state, server).logFile,
  })),
  files: ['pgshard.env', 'pgdog.toml', 'users.toml'].map((name) => join(directory, name)),
})

/** A cluster as it may be printed: without its password. */
export function publicCluster<S extends ClusterServer>(
  cluster: Omit<Cluster, 'servers'> & { servers: S[] },
): Omit<Cluster, 'password' | 'servers'> & { servers: S[] } {
  const { password, ...rest } = cluster
  if (password === undefined) return rest
  const hidden = (server: S) => ({ ...server, url: server.url.replace(/:[^:@]*@/, ':***@') })
  return { ...rest, servers: rest.servers.map(hidden) }
}

/** Starts the cluster of a directory; returns when every server answers and every replica streams. */
export async function startCluster(options: StartOptions): Promise<Cluster> {
  const clock = options.clock ?? systemClock
  const directory = makeDirectory(options.directory)
  return withLock(directory, clock, async () => {
    const known = readState(directory)
    if (known) checkShape(directory, known, options)
    const state = known ?? (await planCluster(directory, options, clock))
    const save = () => writeState(directory, state)
    save()
    const binaries = binariesOf(state, options, clock)
    Object.assign(state, { binDirectory: binaries.binDirectory, version: binaries.version })
    state.socketDirectory = socketDirectory(state.user, state.socketDirectory)
    if (known && options.settings) state.settings = options.settings
    const site: Site = { state, binaries, clock, save }
    await bringUp(site, options)
    const files = writeClusterFiles(directory, state, options.onNote)
    save()
    return { ...describe(directory, state), files }
  })
}

async function bringUp(site: Site, options: StartOptions): Promise<void> {
  const { state, save } = site
  const adopted = state.instances.filter((server) => findPostmaster(server.dataDirectory))
  if (adopted.length > 0 && state.initialized)
    options.onNote?.(`${adopted.length} of ${state.instances.length} servers were running already`)
  const firstStart = !state.initialized
  if (firstStart) await initializeAll(site)
  else if (options.basePort !== undefined) await moveToBasePort(site, options.basePort)
  try {
    await startAll(site, options.basePort, firstStart)
  } catch (error) {
    // a start that fails leaves nothing running that was not running before
    for (const server of state.instances)
      if (!adopted.includes(server)) await stopInstance(instanceOf(state, server), site.clock)
    throw error
  }
  state.initialized = true
  save()
}

/** Ports asked for at a later start, for servers that do not run. */
async function moveToBasePort(site: Site, basePort: number): Promise<void> {
  const { instances } = site.state
  if (instances.every(({ port }, index) => port === basePort + index)) return
  if (instances.some(({ dataDirectory }) => findPostmaster(dataDirectory)))
    throw engineError('CLUSTER_RUNNING_ELSEWHERE', { port: instances[0]!.port })
  const ports = await choosePorts(instances.length, basePort)
  for (const [index, server] of instances.entries()) server.port = ports[index]!
  site.save()
}

/** Stops every server; returns how many were running. */
export async function stopCluster(directory: string, clock: Clock = systemClock): Promise<number> {
  const path = resolve(directory)
  requireState(path)
  return withLock(path, clock, () => stopServers(requireState(path), clock, 'fast'))
}

/** Primaries first: their shutdown hands the last of their WAL to the replicas. */
async function stopServers(
  state: ClusterState,
  clock: Clock,
  mode: 'fast' | 'immediate',
): Promise<number> {
  const replicas = state.instances.filter(({ role }) => role === 'replica')
  let stopped = 0
  for (const group of [primariesOf(state), replicas]) {
    const done = await Promise.all(
      group.map((server) => stopInstance(instanceOf(state, server), clock, mode)),
    )
    stopped += done.filter(Boolean).length
  }
  return stopped
}

/** Stops the servers and removes all that start made. What else is in the directory stays. */
export async function destroyCluster(
  directory: string,
  clock: Clock = systemClock,
): Promise<number> {
  const path = resolve(directory)
  requireState(path)
  const stopped = await withLock(path, clock, async () => {
    const state = requireState(path)
    const count = await stopServers(state, clock, 'immediate')
    for (const place of [state.dataRoot, state.socketDirectory])
      rmSync(place, { recursive: true, force: true })
    for (const name of ['pgshard.env', 'pgdog.toml', 'users.toml'])
      rmSync(join(path, name), { force: true })
    rmSync(stateFile(path), { force: true })
    return count
  })
  removeEmpty(path)
  return stopped
}

/** What others put there, such as the backup of a switched configuration, is theirs. */
function removeEmpty(directory: string): void {
  if (directory === process.cwd()) return
  try {
    rmdirSync(directory)
  } catch {
    // not empty
  }
}

export interface ServerStatus extends ClusterServer {
  state: 'running' | 'starting' | 'stopped'
  /** What the server says itself: it may have been promoted. */
  actualRole?: 'primary' | 'replica'
  /** Bytes of WAL that a replica has not replayed. */
  lagBytes?: number
  sizeBytes?: number
}

const STATUS_QUERY = `SELECT pg_is_in_recovery() AS standby, pg_database_size($1::name) AS size,
  CASE WHEN pg_is_in_recovery() THEN
    pg_wal_lsn_diff(pg_last_wal_receive_lsn(), pg_last_wal_replay_lsn()) END AS lag`

async function statusOf(cluster: Cluster, server: ClusterServer): Promise<ServerStatus> {
  const found = findPostmaster(server.dataDirectory)
  if (!found) return { ...server, state: 'stopped' }
  if (!found.ready) return { ...server, state: 'starting' }
  const address = {
    port: server.port,
    database: cluster.database,
    user: SUPERUSER,
    password: cluster.password,
  }
  const [row] = await askInstance(address, STATUS_QUERY, [cluster.database])
  return {
    ...server,
    state: 'running',
    actualRole: row?.['standby'] === 't' ? 'replica' : 'primary',
    ...(row?.['lag'] == null ? {} : { lagBytes: Number(row['lag']) }),
    ...(row?.['size'] == null ? {} : { sizeBytes: Number(row['size']) }),
  }
}

/** What is there and what runs. @throws CLUSTER_NONE */
export async function clusterStatus(
  directory: string,
): Promise<{ cluster: Cluster; servers: ServerStatus[] }> {
  const path = resolve(directory)
  const cluster = describe(path, requireState(path))
  const servers = await Promise.all(
    cluster.servers.map((server) =>
      statusOf(cluster, server).catch((): ServerStatus => ({ ...server, state: 'starting' })),
    ),
  )
  return { cluster, servers }
}

/** Whether a cluster was made in this directory. */
export const hasCluster = (directory: string): boolean => existsSync(stateFile(resolve(directory)))
