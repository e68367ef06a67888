/** One node-postgres connection to one named host: for jobs that must speak to exactly that server, also over the replication protocol. */
import type { Duplex } from 'node:stream'
import type pg from 'pg'
import { engineError } from '../errors/engine-error.js'
import { driver } from './driver.js'
import { isServerError } from './server-error.js'

/** A server of a topology, with who to be there. */
export interface HostTarget {
  readonly host: string
  readonly port: number
  readonly database: string
  readonly user: string
  readonly password?: string
}

export interface HostClientOptions {
  readonly applicationName?: string
  /** Startup settings, as in libpq's `options`. */
  readonly settings?: Readonly<Record<string, string>>
  readonly connectTimeoutMs?: number
  readonly replication?: 'database'
  /** Send a query before the answer to the one before it has come; each is still a request of its own. */
  readonly pipeline?: boolean
}

const escaped = (value: string): string => value.replace(/([\\ ])/g, '\\$1')

/** The options that node-postgres and those built on it take. */
export function hostClientConfig(
  target: HostTarget,
  options: HostClientOptions = {},
): pg.ClientConfig {
  const settings = Object.entries(options.settings ?? {})
  return {
    host: target.host,
    port: target.port,
    database: target.database,
    user: target.user,
    ...(target.password === undefined ? {} : { password: target.password }),
    application_name: options.applicationName ?? 'pgshard',
    connectionTimeoutMillis: options.connectTimeoutMs ?? 10_000,
    keepAlive: true,
    ...(settings.length === 0
      ? {}
      : { options: settings.map(([name, value]) => `-c ${name}=${escaped(value)}`).join(' ') }),
    ...(options.replication === undefined ? {} : { replication: options.replication }),
    ...(options.pipeline ? { pipeline: true } : {}),
  } as pg.ClientConfig
}

/**
 * Connects. A connection that dies while idle does not end the process: its next query fails.
 * @throws CONNECT_FAILED, CONNECT_REJECTED
 */
export async function openHostClient(
  target: HostTarget,
  options: HostClientOptions = {},
): Promise<pg.Client> {
  const client = new driver.Client(hostClientConfig(target, options))
  client.on('error', () => undefined)
  try {
    await client.connect()
    return client
  } catch (error) {
    const { host, port, database } = target
    const where = `${host}:${port}/${database}`
    const message = `could not connect to ${where}: ${reasonOf(error)}`
    const code = isServerError(error) ? 'CONNECT_REJECTED' : 'CONNECT_FAILED'
    throw engineError(code, { message }, { cause: error })
  }
}

/** Several addresses refused are one AggregateError without a message. */
function reasonOf(error: unknown): string {
  const first = error instanceof AggregateError ? error.errors[0] : error
  return first instanceof Error && first.message !== '' ? first.message : String(error)
}

export type HostClient = pg.Client

/**
 * The socket of a client that is logged in and idle, for someone who speaks the protocol himself from now on.
 * The client hears nothing more: end it by destroying the socket.
 */
export function takeSocket(client: HostClient): Duplex {
  const { stream } = (client as unknown as { connection: { stream: Duplex } }).connection
  stream.removeAllListeners('data')
  stream.removeAllListeners('error')
  stream.on('error', () => undefined)
  return stream
}
