/** Opens connections of our own driver by libpq's rules, and knows which node each reached. */
import { readFileSync } from 'node:fs'
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import { resolveHost } from '../../pg/local-environment.js'
import { openServer } from '../../server/open-server.js'
import type { ServerConnection } from '../../server/server-connection.js'
import type { ServerTarget } from '../../server/server-target.js'
import type { Conninfo, ConninfoTls } from '../../topology/conninfo.js'
import {
  type Candidate,
  connectCandidates,
  type SessionState,
} from '../../topology/host-candidates.js'
import type { Prng } from '../../topology/prng.js'

const readPem = (path: string): Buffer => {
  try {
    return readFileSync(path)
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    throw engineError('FILE_MISSING', { path, reason }, { cause })
  }
}

const refuse = (option: string, value: string, instead: string): never => {
  throw engineError('CONNINFO_UNSUPPORTED', { option, value, instead })
}

/** sslmode as our driver knows it; files are read once. */
export function serverTls(tls: ConninfoTls): (host: string) => ServerTarget['tls'] {
  // "allow" begins without TLS and comes back with it, which our own driver cannot.
  if (tls.mode === 'allow') refuse('sslmode', 'allow', 'sslmode=prefer')
  if (tls.keyPassword !== undefined) refuse('sslpassword', '***', 'a key without a password')
  if (tls.mode === 'disable') return () => undefined
  const hasRoot = tls.rootCertificatePath !== undefined && tls.rootCertificatePath !== 'system'
  const files = {
    ...(hasRoot ? { ca: readPem(tls.rootCertificatePath as string) } : {}),
    ...(tls.certificatePath === undefined ? {} : { cert: readPem(tls.certificatePath) }),
    ...(tls.keyPath === undefined ? {} : { key: readPem(tls.keyPath) }),
  }
  const verify =
    tls.mode === 'verify-full'
      ? 'full'
      : tls.mode === 'verify-ca' || (tls.mode === 'require' && hasRoot)
        ? 'ca'
        : 'none'
  const mode = tls.mode === 'prefer' ? 'prefer' : 'require'
  return (host) =>
    host.startsWith('/')
      ? undefined
      : { mode, negotiation: tls.negotiation ?? 'postgres', options: { host, verify, ...files } }
}

async function sessionState(server: ServerConnection): Promise<SessionState> {
  const results = await server.query(
    "select pg_catalog.pg_is_in_recovery(), pg_catalog.current_setting('default_transaction_read_only')",
  )
  const row = results[0]?.rows[0]
  return { inHotStandby: row?.[0] === 't', defaultReadOnly: row?.[1] === 'on' }
}

export interface Connector {
  open(): Promise<{ server: ServerConnection; hostIndex: number }>
}

/** `random` feeds the shuffles; `onFailure` hears of every failed attempt. */
export function makeConnector(
  conninfo: Conninfo,
  clock: Clock,
  random: Prng,
  onFailure: (hostIndex: number | undefined, sqlstate: string) => void,
): Connector {
  const timeoutMs = conninfo.connectTimeoutMs
  const tlsFor = serverTls(conninfo.tls)
  const target = (candidate: Candidate): ServerTarget => {
    const tls = tlsFor(candidate.address.startsWith('/') ? candidate.address : candidate.host.host)
    return {
      host: candidate.address,
      port: candidate.port,
      user: conninfo.user,
      database: conninfo.database,
      parameters: { application_name: 'pgshard bench', ...conninfo.startupParameters },
      ...(candidate.host.password === undefined ? {} : { password: candidate.host.password }),
      ...(tls === undefined ? {} : { tls }),
      channelBinding: conninfo.channelBinding ?? 'prefer',
    }
  }
  const tools = {
    resolve: resolveHost,
    makeRandom: () => random,
    clock,
    sessionState,
    close: (server: ServerConnection) => server.destroy(),
    onFailure: (candidate: Candidate | undefined, _block: string, sqlstate: string) =>
      onFailure(candidate?.hostIndex, sqlstate),
  }
  return {
    open: async () => {
      const found = await connectCandidates(
        conninfo,
        (candidate, signal) =>
          openServer(target(candidate), {
            signal,
            ...(timeoutMs === undefined ? {} : { timeoutMs }),
          }),
        tools,
      )
      return { server: found.connection, hostIndex: found.candidate.hostIndex }
    },
  }
}
