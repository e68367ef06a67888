/** Where a proxy listens: a TCP port, and a Unix socket beside it when one is configured. */
import type { LoadedConfig } from '../../config/loaded-config.js'
import type { Listener, ListenOptions } from '../../net/listener.js'

/** Of accepted and of opened sockets. */
export function keepAliveOf(tcp: LoadedConfig['tcp']): {
  readonly keepAlive: boolean
  readonly keepAliveIdleMs?: number
} {
  const { keepalive: keepAlive, timeMs } = tcp
  return timeMs === undefined ? { keepAlive } : { keepAlive, keepAliveIdleMs: timeMs }
}

/** What wins over the file. */
export interface ListenAt {
  readonly host?: string
  readonly port?: number
}

/** The TCP port is the first. @throws NET_LISTEN_FAILED */
export async function openListeners(
  { general, tcp }: LoadedConfig,
  at: ListenAt,
  open: (options: ListenOptions) => Promise<Listener>,
): Promise<Listener[]> {
  const { host = general.host, port = general.port } = at
  const backlog = general.listenBacklog
  const first = await open({ host, port, backlog, ...keepAliveOf(tcp) })
  if (general.unixSocketDir === undefined) return [first]
  const path = `${general.unixSocketDir}/.s.PGSQL.${first.port}`
  return [first, await open({ path, backlog })]
}
