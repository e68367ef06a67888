/** Where others look at `serve`: metrics to be scraped, health to be probed, metrics pushed, the web page. One for all workers. */
import { healthOf } from '../../admin/health.js'
import { familiesOf } from '../../admin/metrics/families.js'
import { metricsText } from '../../metrics/open-metrics.js'
import type { HttpRoutes } from '../../web/http-server.js'
import type { OutletSources } from './outlet-sources.js'
import { pushMetrics } from './push-metrics.js'

export interface Outlets {
  close(): Promise<void>
}

/** PgDog's probes come from other machines. */
const EVERYWHERE = '0.0.0.0'

/** @throws NET_LISTEN_FAILED; then nothing is open */
export async function openOutlets(sources: OutletSources): Promise<Outlets> {
  const open: (() => Promise<void>)[] = []
  const close = async () => {
    await Promise.all(open.splice(0).map((end) => end()))
  }
  try {
    for (const start of wanted(sources)) open.push(await start())
  } catch (error) {
    await close()
    throw error
  }
  return { close }
}

/** What the configuration asks for. */
function wanted(sources: OutletSources): (() => Promise<() => Promise<void>>)[] {
  const { general, otel } = sources.config()
  const { openmetricsPort, openmetricsHost, healthcheckPort, webPort } = general
  const starts: (() => Promise<() => Promise<void>>)[] = []
  if (openmetricsPort !== undefined)
    starts.push(() =>
      overHttp(sources, 'metrics', { host: openmetricsHost, port: openmetricsPort }),
    )
  if (healthcheckPort !== undefined)
    starts.push(() => overHttp(sources, 'health', { host: EVERYWHERE, port: healthcheckPort }))
  if (webPort !== undefined)
    starts.push(async () => (await import('./open-web-page.js')).openWebPage(sources, webPort))
  if (otel.endpoint !== undefined) starts.push(async () => pushed(sources))
  return starts
}

/** Loaded here: most proxies need no HTTP. */
async function overHttp(
  sources: OutletSources,
  what: 'metrics' | 'health',
  where: { readonly host: string; readonly port: number },
): Promise<() => Promise<void>> {
  const { startHttpServer } = await import('../../web/http-server.js')
  const { healthRoutes, metricsRoutes } = await import('../../web/metrics-routes.js')
  const routes: HttpRoutes =
    what === 'health'
      ? healthRoutes(async () => healthOf(await sources.look()))
      : metricsRoutes(async (accept) => {
          const prefix = sources.config().general.openmetricsNamespace
          return metricsText(familiesOf(await sources.look()), { prefix, accept })
        })
  const server = await startHttpServer({ ...where, routes })
  sources.log.info(`${what} over HTTP`, { host: server.host, port: server.port })
  return () => server.close()
}

function pushed({ clock, log, config, look }: OutletSources): () => Promise<void> {
  const { host, port } = config().general
  const instanceId = `${host}:${port}`
  const stop = pushMetrics({ clock, log, instanceId, otel: () => config().otel, look })
  return async () => stop()
}
