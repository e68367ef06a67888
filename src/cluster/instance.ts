/**
 * One PostgreSQL server on this machine: its settings, start, stop. Knows nothing of shards.
 * A start returns when the server accepts connections; a stop when its process is gone.
 */
import { closeSync, existsSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { findPostmaster, isAlive, orphans, type Postmaster } from './postmaster.js'
import { giveTo, type ServerUser, spawnServer } from './run-as.js'
import { SETTINGS_FILE } from './template.js'

const START_DEADLINE_MS = 60_000
const FAST_STOP_MS = 30_000
const IMMEDIATE_STOP_MS = 15_000
const POLL_MS = 15

export interface Instance {
  name: string
  port: number
  dataDirectory: string
  logFile: string
  binDirectory: string
  socketDirectory: string
  user: ServerUser
}

/** Small, fully durable, and ready for everything that pgshard does. */
const baseSettings: Record<string, string> = {
  listen_addresses: '127.0.0.1',
  unix_socket_permissions: '0777',
  max_connections: '200',
  shared_buffers: '48MB',
  wal_level: 'logical',
  max_wal_senders: '40',
  max_replication_slots: '40',
  max_prepared_transactions: '200',
  max_worker_processes: '32',
  max_logical_replication_workers: '16',
  hot_standby: 'on',
  hot_standby_feedback: 'on',
  wal_keep_size: '64MB',
  wal_retrieve_retry_interval: '200ms', // a replica finds its restarted primary at once
  min_wal_size: '32MB',
  max_wal_size: '1GB',
  huge_pages: 'off',
  jit: 'off',
  timezone: 'UTC',
  log_timezone: 'UTC',
  log_line_prefix: '%m [%p] ',
  cluster_name: '',
}

/** A value in postgresql.conf, where a backslash escapes. */
const quoted = (value: string): string => `'${value.replace(/[\\']/g, '\\$&')}'`

/** Writes our settings of the server; the user's own (ALTER SYSTEM) come after them. */
export function writeSettings(instance: Instance, more: Record<string, string>): void {
  const settings = {
    ...baseSettings,
    cluster_name: instance.name,
    port: String(instance.port),
    unix_socket_directories: instance.socketDirectory,
    ...more,
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${quoted(value)}`)
  const file = join(instance.dataDirectory, SETTINGS_FILE)
  writeFileSync(file, `${lines.join('\n')}\n`, { mode: 0o600 })
  giveTo(instance.user, file)
}

/** The end of a server's log. */
export function logTail(logFile: string, lines = 8): string {
  try {
    return readFileSync(logFile, 'utf8').trimEnd().split('\n').slice(-lines).join('\n')
  } catch {
    return ''
  }
}

/** The server could not have its port: the caller may choose another. */
export class PortTaken extends Error {}

/** What a server that died leaves and what would keep the next from starting. */
async function clearLeftovers(instance: Instance, clock: Clock): Promise<void> {
  const deadline = clock.monotonicMs() + FAST_STOP_MS
  while (orphans(instance.dataDirectory).length > 0 && clock.monotonicMs() < deadline)
    await clock.sleep(POLL_MS) // children of a killed postmaster see that it is gone, and go
  if (orphans(instance.dataDirectory).length > 0) return // PostgreSQL will say so itself
  // no process of this server is left, so its lock files hold nobody's lock
  if (process.platform === 'linux')
    rmSync(join(instance.dataDirectory, 'postmaster.pid'), { force: true })
  const socket = join(instance.socketDirectory, `.s.PGSQL.${instance.port}`)
  rmSync(socket, { force: true })
  rmSync(`${socket}.lock`, { force: true })
}

/** Starts the server, or adopts the one that runs. @throws CLUSTER_START, PortTaken */
export async function startInstance(instance: Instance, clock: Clock): Promise<Postmaster> {
  if (!findPostmaster(instance.dataDirectory)) await launch(instance, clock)
  const deadline = clock.monotonicMs() + START_DEADLINE_MS
  while (clock.monotonicMs() < deadline) {
    const found = findPostmaster(instance.dataDirectory)
    if (found?.ready) return found
    await clock.sleep(POLL_MS)
  }
  throw startError(instance)
}

const startError = (instance: Instance) =>
  engineError(
    'CLUSTER_START',
    { name: instance.name, log: instance.logFile },
    { detail: logTail(instance.logFile) },
  )

/** Spawns the postmaster and waits until it has written its pid file, or has failed. */
async function launch(instance: Instance, clock: Clock): Promise<void> {
  await clearLeftovers(instance, clock)
  const logFd = openSync(instance.logFile, 'a', 0o644)
  const begin = existsSync(instance.logFile) ? readFileSync(instance.logFile).length : 0
  const program = join(instance.binDirectory, 'postgres')
  const child = spawnServer(instance.user, program, ['-D', instance.dataDirectory], logFd)
  closeSync(logFd)
  let ended = false
  child.once('exit', () => {
    ended = true
  })
  child.once('error', () => {
    ended = true
  })
  const deadline = clock.monotonicMs() + START_DEADLINE_MS
  while (!ended && clock.monotonicMs() < deadline) {
    if (findPostmaster(instance.dataDirectory)?.ready) return
    await clock.sleep(POLL_MS)
  }
  const log = readFileSync(instance.logFile).subarray(begin).toString()
  if (/Address already in use/.test(log)) throw new PortTaken(instance.name)
  throw startError(instance)
}

/** Stops the server: a fast shutdown, then an immediate one. True when it was running. @throws CLUSTER_STOP */
export async function stopInstance(
  instance: Pick<Instance, 'name' | 'dataDirectory' | 'logFile'>,
  clock: Clock,
  mode: 'fast' | 'immediate' = 'fast',
): Promise<boolean> {
  const found = findPostmaster(instance.dataDirectory)
  if (!found) return false
  const steps: [NodeJS.Signals, number][] = [
    ['SIGINT', FAST_STOP_MS],
    ['SIGQUIT', IMMEDIATE_STOP_MS],
    ['SIGKILL', IMMEDIATE_STOP_MS],
  ]
  for (const [signal, waitMs] of mode === 'fast' ? steps : steps.slice(1))
    if (await signalAndWait(found, signal, waitMs, clock)) return true
  throw engineError('CLUSTER_STOP', {
    name: instance.name,
    pid: found.pid,
    seconds: (FAST_STOP_MS + 2 * IMMEDIATE_STOP_MS) / 1000,
    log: instance.logFile,
  })
}

async function signalAndWait(
  found: Postmaster,
  signal: NodeJS.Signals,
  waitMs: number,
  clock: Clock,
): Promise<boolean> {
  if (!isAlive(found)) return true
  try {
    process.kill(found.pid, signal)
  } catch {
    // it ended in between
  }
  const deadline = clock.monotonicMs() + waitMs
  while (clock.monotonicMs() < deadline) {
    if (!isAlive(found)) return true
    await clock.sleep(POLL_MS)
  }
  return false
}
