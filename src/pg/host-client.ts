/** One node-postgres connection to one named host: for jobs that must speak to exactly that server, also over the replication protocol. */
import type { Duplex } from 'node:stream'
import pg from 'pg'

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
 * Connects; rejects with node-postgres' own error. A connection that dies while idle does not end the process:
 * its next query fails.
 */
export async function openHostClient(
  target: HostTarget,
  options: HostClientOptions = {},
): Promise<pg.Client> {
  const client = new pg.Client(hostClientConfig(target, options))
  client.on('error', () => undefined)
  await client.connect()
  return client
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
