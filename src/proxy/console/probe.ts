/** PROBE of the console: how long a server takes to let somebody in. */
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import type { OpenServer } from '../../pool/definition.js'
import type { ServerTarget } from '../../server/server-target.js'
import { isConninfoUri, parseConninfoUri } from '../../topology/conninfo-uri.js'

const TIMEOUT_MS = 5000

/** @throws CONNINFO_INVALID, ADMIN_SYNTAX, and what an opening does */
export async function probe(url: string, clock: Clock, openServer: OpenServer): Promise<number> {
  const target = targetOf(url)
  const startedMs = clock.monotonicMs()
  const server = await openServer(target, { timeoutMs: TIMEOUT_MS })
  const elapsedMs = clock.monotonicMs() - startedMs
  server.close()
  return elapsedMs
}

function targetOf(url: string): ServerTarget {
  if (!isConninfoUri(url))
    throw engineError('ADMIN_SYNTAX', { reason: 'PROBE takes a postgres:// URL' })
  const values = parseConninfoUri(url)
  const user = values['user'] ?? 'postgres'
  return {
    host: values['host'] ?? 'localhost',
    port: Number(values['port'] ?? 5432),
    user,
    database: values['dbname'] ?? user,
    ...(values['password'] === undefined ? {} : { password: values['password'] }),
    ...tlsOf(values['sslmode']),
  }
}

/** A probe proves nothing of certificates: it only asks whether the server answers as we would speak to it. */
function tlsOf(mode = 'prefer'): Pick<ServerTarget, 'tls'> {
  if (mode === 'disable') return {}
  return { tls: { mode: mode === 'prefer' ? 'prefer' : 'require', options: { verify: 'none' } } }
}
