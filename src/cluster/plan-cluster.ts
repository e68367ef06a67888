/** Decides the shape of a new cluster: names, ports, places; and whether an old one fits what is wanted. */
import { chmodSync, lstatSync, mkdirSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { findFreePorts, isPortFree } from '../net/free-port.js'
import { type Binaries, findBinaries } from './binaries.js'
import { sharedTemporaryDirectory } from './cache-directory.js'
import type { ClusterState, InstanceState } from './cluster-state.js'
import type { Instance } from './instance.js'
import { canRead, giveTo, type ServerUser, serverUser } from './run-as.js'

/** What is wanted of a cluster; what is undefined is as found, or as the default. */
export interface Wanted {
  shards?: number | undefined
  replicas?: number | undefined
  postgresVersion?: number | undefined
  binDirectory?: string | undefined
  basePort?: number | undefined
  password?: string | undefined
  database?: string | undefined
  settings?: Record<string, string> | undefined
}

/** The path of a socket must stay under 104 bytes, its name takes 21. */
const LONGEST_SOCKET_DIRECTORY = 80

/** A new directory under the temporary one that belongs to `user`. */
function temporaryDirectory(user: ServerUser, kind: string): string {
  const shared = sharedTemporaryDirectory(user)
  const parent =
    kind === 'socket' && shared.length > LONGEST_SOCKET_DIRECTORY - 20 ? '/tmp' : shared
  const made = mkdtempSync(join(parent, `pgshard-${kind}-`))
  chmodSync(made, 0o755)
  giveTo(user, made)
  return made
}

/** The socket directory remembered, or a new one when it is gone or no longer safe. */
export function socketDirectory(user: ServerUser, remembered?: string): string {
  try {
    const found = remembered === undefined ? undefined : lstatSync(remembered)
    if (
      remembered !== undefined &&
      found?.isDirectory() &&
      found.uid === (user?.uid ?? process.getuid?.())
    )
      return remembered
  } catch {
    // gone: temporary directories are cleaned
  }
  return temporaryDirectory(user, 'socket')
}

/** Where the data goes: in the cluster's directory when the server's user can enter it. */
function dataRoot(directory: string, user: ServerUser): string {
  if (!canRead(user, [directory])) return temporaryDirectory(user, 'data')
  const root = join(directory, 'data')
  mkdirSync(root, { recursive: true })
  chmodSync(root, 0o755)
  giveTo(user, root)
  return root
}

const instanceNames = (shards: number, replicas: number) => {
  const primaries = Array.from({ length: shards }, (_, shard) => ({
    name: `shard_${shard}`,
    shard,
    role: 'primary' as const,
  }))
  const followers = Array.from({ length: shards * replicas }, (_, index) => {
    const shard = Math.floor(index / replicas)
    return {
      name: `shard_${shard}_replica_${(index % replicas) + 1}`,
      shard,
      role: 'replica' as const,
    }
  })
  return [...primaries, ...followers]
}

/** Ports from `basePort` on, or free ones. @throws CLUSTER_PORT_IN_USE */
export async function choosePorts(count: number, basePort?: number): Promise<number[]> {
  if (basePort === undefined) return findFreePorts(count)
  const ports = Array.from({ length: count }, (_, index) => basePort + index)
  for (const port of ports)
    if (!(await isPortFree(port))) throw engineError('CLUSTER_PORT_IN_USE', { port })
  return ports
}

/** State of a cluster that is yet to be made. */
export async function planCluster(
  directory: string,
  wanted: Wanted,
  clock: Clock,
): Promise<ClusterState> {
  const user = serverUser()
  const binaries = findBinaries(
    { major: wanted.postgresVersion, binDirectory: wanted.binDirectory },
    user,
    clock,
  )
  const names = instanceNames(wanted.shards ?? 2, wanted.replicas ?? 0)
  const ports = await choosePorts(names.length, wanted.basePort)
  const root = dataRoot(directory, user)
  const instances: InstanceState[] = names.map((name, index) => ({
    ...name,
    port: ports[index]!,
    dataDirectory: join(root, name.name),
  }))
  return {
    format: 1,
    version: binaries.version,
    binDirectory: binaries.binDirectory,
    ...(user ? { user } : {}),
    database: wanted.database ?? 'app',
    ...(wanted.password === undefined ? {} : { password: wanted.password }),
    socketDirectory: socketDirectory(user),
    dataRoot: root,
    settings: wanted.settings ?? {},
    initialized: false,
    instances,
    written: {},
  }
}

/** The programs for a cluster that exists: those that it was made with, or the same major version found anew. */
export function binariesOf(state: ClusterState, wanted: Wanted, clock: Clock): Binaries {
  const major = Number.parseInt(state.version, 10)
  const binDirectory = wanted.binDirectory ?? state.binDirectory
  try {
    return findBinaries({ major, binDirectory }, state.user, clock)
  } catch (error) {
    if (wanted.binDirectory !== undefined) throw error
    return findBinaries({ major }, state.user, clock) // a cached copy that was cleaned away
  }
}

/** @throws CLUSTER_DIFFERENT when the cluster is not of the shape asked for */
export function checkShape(directory: string, state: ClusterState, wanted: Wanted): void {
  const shards = state.instances.filter(({ role }) => role === 'primary').length
  const replicas = (state.instances.length - shards) / shards
  const major = Number.parseInt(state.version, 10)
  const facts: [string, number | string, number | string | undefined][] = [
    ['shards', shards, wanted.shards],
    ['replicas a shard', replicas, wanted.replicas],
    ['as PostgreSQL version', major, wanted.postgresVersion],
    ['as its database', state.database, wanted.database],
  ]
  for (const [what, found, asked] of facts)
    if (asked !== undefined && asked !== found)
      throw engineError('CLUSTER_DIFFERENT', {
        directory,
        found: `${found} ${what}`,
        wanted: String(asked),
      })
}

/** What starting and stopping need to know of a server. */
export const instanceOf = (state: ClusterState, server: InstanceState): Instance => ({
  name: server.name,
  port: server.port,
  dataDirectory: server.dataDirectory,
  logFile: `${server.dataDirectory}.log`,
  binDirectory: state.binDirectory,
  socketDirectory: state.socketDirectory,
  user: state.user,
})
