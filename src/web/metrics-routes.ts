/** What machines ask over HTTP: the metrics of a scrape, and whether a load balancer may send clients here. Any path answers, as PgDog's ports do. */
import type { HttpRoutes } from './http-server.js'

export interface ScrapeAnswer {
  readonly contentType: string
  readonly body: string
}

export interface HealthAnswer {
  readonly isUp: boolean
  /** One line for people: `up`, or why not. */
  readonly reason: string
}

/** `accept`: what the scraper says that it understands; undefined when it says nothing. */
export function metricsRoutes(
  scrape: (accept: string | undefined) => Promise<ScrapeAnswer>,
): HttpRoutes {
  return (app) => {
    app.get('/*', async (request, reply) => {
      const { contentType, body } = await scrape(request.headers.accept)
      return reply
        .header('content-type', contentType)
        .header('cache-control', 'no-store')
        .send(body)
    })
  }
}

/** 200 while clients can be served, 503 when not. */
export function healthRoutes(look: () => Promise<HealthAnswer>): HttpRoutes {
  return (app) => {
    app.get('/*', async (_request, reply) => {
      const { isUp, reason } = await look()
      return reply
        .code(isUp ? 200 : 503)
        .header('content-type', 'text/plain; charset=utf-8')
        .header('cache-control', 'no-store')
        .send(`${reason}\n`)
    })
  }
}
