/** The web page of `serve`, when it is asked for: its port, its token, what it looks at. Loaded late, as most proxies have none. */
import { readChartedMoves } from '../../tasks/charted-moves.js'
import { Feed } from '../../web/feed.js'
import { startHttpServer } from '../../web/http-server.js'
import { pageRoutes } from '../../web/page-routes.js'
import { makeToken, WebAccess } from '../../web/web-token.js'
import type { OutletSources } from './outlet-sources.js'

const isLoopback = (host: string): boolean =>
  host === 'localhost' || host === '::1' || /^127\./.test(host)

/** A token of the configuration is not repeated: logs are read by many. @throws NET_LISTEN_FAILED */
export async function openWebPage(
  sources: OutletSources,
  port: number,
): Promise<() => Promise<void>> {
  const { clock, log, look, config, announce } = sources
  const { webHost: host, webToken } = config().general
  const token = webToken ?? makeToken()
  const feed = new Feed({ clock, log, look, moves: () => readChartedMoves(config()) })
  const routes = pageRoutes(feed, new WebAccess(token))
  const server = await startHttpServer({ host, port, routes })
  feed.start()
  const at = server.host.includes(':') ? `[${server.host}]` : server.host
  const secret = webToken === undefined ? `?token=${token}` : ''
  announce(`web page on http://${at}:${server.port}/${secret}`)
  if (!isLoopback(host))
    log.warn('the web page can be reached from other machines, without TLS', { host })
  return async () => {
    feed.stop()
    await server.close()
  }
}
