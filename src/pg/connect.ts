/**
 * `connectPg(conninfo)`: a pg client on the first host that takes us, by libpq's rules. The way in which every
 * administrative conversation starts. Never reads PG* variables behind the connection string's back.
 */

import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import type pg from 'pg'
import { type Clock, systemClock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import {
  type Conninfo,
  type ConninfoEnvironment,
  type ConninfoOverrides,
  type ConninfoTls,
  parseConninfo,
} from '../topology/conninfo.js'
import {
  type Candidate,
  connectCandidates,
  type SessionState,
} from '../topology/host-candidates.js'
import { Prng, type Uint64Source } from '../topology/prng.js'
import { requireBinding } from './channel-binding.js'
import { driver } from './driver.js'
import { localEnvironment, resolveHost } from './local-environment.js'

export interface ConnectOptions {
  readonly environment?: ConninfoEnvironment
  readonly overrides?: ConninfoOverrides
  /** application_name when the connection string names none. */
  readonly applicationName?: string
  readonly clock?: Clock
  /** Chance for load_balance_hosts=random; by default seeded from the system. */
  readonly random?: Uint64Source
  readonly onFailure?: (candidate: Candidate | undefined, block: string) => void
}

/** What pg hands to TLS. */
type ConnectionOptions = Exclude<pg.ClientConfig['ssl'], boolean | undefined>

let weakSeeds = 0n

/**
 * A generator seeded from the system's entropy, one a connection as in libpq; where that has none, from what differs
 * between processes, moments and calls. Source followed: libpq_prng_init in fe-connect.c.
 */
export const systemRandom = (strong: (size: number) => Buffer = randomBytes): Uint64Source => {
  try {
    const bytes = strong(16)
    return Prng.ofState(bytes.readBigUInt64LE(0), bytes.readBigUInt64LE(8))
  } catch {
    const microseconds = BigInt(Math.round(systemClock.nowMs() * 1000))
    return Prng.ofSeed((++weakSeeds << 32n) ^ BigInt(process.pid) ^ microseconds)
  }
}

/** pg's TLS options for a sslmode; undefined when it must not encrypt. */
export function tlsOptions(tls: ConninfoTls, host: string): ConnectionOptions | undefined {
  if (tls.mode === 'disable' || host.startsWith('/')) return undefined
  const read = (path: string) => {
    try {
      return readFileSync(path)
    } catch (cause) {
      const reason = cause instanceof Error ? cause.message : String(cause)
      throw engineError('FILE_MISSING', { path, reason }, { cause })
    }
  }
  const hasRoot = tls.rootCertificatePath !== undefined && tls.rootCertificatePath !== 'system'
  const mustVerify = tls.mode.startsWith('verify') || (tls.mode === 'require' && hasRoot)
  return {
    rejectUnauthorized: mustVerify,
    minVersion: 'TLSv1.2',
    ...(tls.mode === 'verify-full' ? {} : { checkServerIdentity: () => undefined }),
    ...(/^[\d.]+$|:/.test(host) ? {} : { servername: host }),
    ...(hasRoot ? { ca: read(tls.rootCertificatePath as string) } : {}),
    ...(tls.certificatePath === undefined ? {} : { cert: read(tls.certificatePath) }),
    ...(tls.keyPath === undefined ? {} : { key: read(tls.keyPath) }),
    ...(tls.keyPassword === undefined ? {} : { passphrase: tls.keyPassword }),
  }
}

/** The socket under a pg client; for breaking off what has no polite end. */
export function destroySocket(client: pg.Client): void {
  const inner = client as unknown as { connection: { stream: { destroy(): void } } }
  inner.connection.stream.destroy()
}

/** Closes it as soon as all that was written is on its way. */
export function endSocket(client: pg.Client): void {
  const inner = client as unknown as { connection: { stream: { destroySoon(): void } } }
  inner.connection.stream.destroySoon()
}

const whereOf = new WeakMap<pg.Client, string>()

/** "host:port/database" of a client made here, for messages. */
export const clientWhere = (client: pg.Client): string =>
  whereOf.get(client) ?? `${client.host}:${client.port}/${client.database ?? ''}`

function clientOptions(
  conninfo: Conninfo,
  candidate: Candidate,
  ssl: ConnectionOptions | undefined,
  options: ConnectOptions,
): pg.ClientConfig {
  const { password } = candidate.host
  const parameters = conninfo.startupParameters
  const missing = () => {
    throw engineError('CONNECT_REJECTED', { message: 'fe_sendauth: no password supplied' })
  }
  return {
    host: candidate.address,
    port: candidate.port,
    user: conninfo.user,
    database: conninfo.database,
    password: password ?? missing,
    ssl: ssl ?? false,
    ...(ssl && conninfo.tls.negotiation ? { sslnegotiation: conninfo.tls.negotiation } : {}),
    ...(conninfo.channelBinding === 'require' ? { enableChannelBinding: true } : {}),
    keepAlive: conninfo.keepAlive,
    ...(conninfo.keepAliveIdleMs === undefined
      ? {}
      : { keepAliveInitialDelayMillis: conninfo.keepAliveIdleMs }),
    application_name: parameters['application_name'] ?? options.applicationName ?? 'pgshard',
    ...(parameters['client_encoding'] === undefined
      ? {}
      : { client_encoding: parameters['client_encoding'] }),
    ...(parameters['options'] === undefined ? {} : { options: parameters['options'] }),
    ...(parameters['replication'] === undefined ? {} : { replication: parameters['replication'] }),
  }
}

async function openOnce(
  config: pg.ClientConfig,
  signal: AbortSignal,
  mustBind: boolean,
): Promise<pg.Client> {
  const client = new driver.Client(config)
  const binding = mustBind ? requireBinding(client) : undefined
  // A connection lost while idle must not end the process; the next query reports it.
  client.on('error', () => undefined)
  const stop = () => destroySocket(client)
  signal.addEventListener('abort', stop, { once: true })
  try {
    await client.connect()
    const refused = binding?.refused()
    if (refused) throw refused
    return client
  } catch (error) {
    stop()
    const refused = binding?.refused()
    if (refused) throw refused
    throw error instanceof Error && error.message === 'Connection terminated unexpectedly'
      ? new Error('server closed the connection unexpectedly', { cause: error })
      : error
  } finally {
    signal.removeEventListener('abort', stop)
  }
}

const refusesTls = (error: unknown): boolean =>
  error instanceof Error && error.message.includes('does not support SSL')

const isRejection = (error: unknown): boolean =>
  (error as { code?: unknown } | undefined)?.code === '28000'

/** sslmode=prefer tries TLS first and plain next, allow the other way round. */
async function openCandidate(
  conninfo: Conninfo,
  candidate: Candidate,
  signal: AbortSignal,
  options: ConnectOptions,
): Promise<pg.Client> {
  const { mode } = conninfo.tls
  const name = candidate.address.startsWith('/') ? candidate.address : candidate.host.host
  const tls = tlsOptions(conninfo.tls, name)
  const open = (ssl: ConnectionOptions | undefined) =>
    openOnce(
      clientOptions(conninfo, candidate, ssl, options),
      signal,
      conninfo.channelBinding === 'require',
    )
  if (tls === undefined) return await open(undefined)
  const [first, second] = mode === 'allow' ? [undefined, tls] : [tls, undefined]
  try {
    return await open(first)
  } catch (error) {
    const mayFallBack = mode === 'allow' || mode === 'prefer'
    const isWorthIt = refusesTls(error) || isRejection(error)
    if (!mayFallBack || !isWorthIt || signal.aborted) throw error
    return await open(second).catch((plain: unknown) => {
      throw mode === 'allow' && refusesTls(plain) ? error : plain
    })
  }
}

async function sessionState(client: pg.Client): Promise<SessionState> {
  const { rows } = await client.query<{ standby: boolean; mode: string }>(
    "select pg_catalog.pg_is_in_recovery() as standby, pg_catalog.current_setting('default_transaction_read_only') as mode",
  )
  return { inHotStandby: rows[0]?.standby === true, defaultReadOnly: rows[0]?.mode === 'on' }
}

/** Reads a connection string with this machine's environment; a ready Conninfo passes through. */
export function readConninfo(target: string | Conninfo, options: ConnectOptions = {}): Conninfo {
  if (typeof target !== 'string') return target
  return parseConninfo(target, options.environment ?? localEnvironment(), options.overrides ?? {})
}

/** Connects to the first fitting host. Rejects with one EngineError that holds a block per failed attempt. */
export async function connectPg(
  target: string | Conninfo,
  options: ConnectOptions = {},
): Promise<pg.Client> {
  const conninfo = readConninfo(target, options)
  const { random, onFailure } = options
  const { connection, candidate } = await connectCandidates<pg.Client>(
    conninfo,
    (candidate, signal) => openCandidate(conninfo, candidate, signal, options),
    {
      resolve: resolveHost,
      makeRandom: () => random ?? systemRandom(),
      clock: options.clock ?? systemClock,
      sessionState,
      close: destroySocket,
      ...(onFailure === undefined ? {} : { onFailure }),
    },
  )
  whereOf.set(connection, `${candidate.host.host}:${candidate.port}/${conninfo.database}`)
  return connection
}

/** One connection string per host of `target`, each reaching that host alone. */
export function eachHost(target: string | Conninfo, options: ConnectOptions = {}): Conninfo[] {
  const conninfo = readConninfo(target, options)
  return conninfo.hosts.map((host) => ({ ...conninfo, hosts: [host] }))
}
