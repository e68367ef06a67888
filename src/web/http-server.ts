/** A small HTTP server for pages that are not PostgreSQL: one port, routes handed in, no TLS. Its own sockets: what is asked here is no client's. */
import { type FastifyInstance, fastify } from 'fastify'
import { engineError } from '../errors/engine-error.js'

/** Puts routes and hooks on a server that does not listen yet. */
export type HttpRoutes = (app: FastifyInstance) => void

export interface HttpServerOptions {
  readonly host: string
  /** 0: one that is free. */
  readonly port: number
  readonly routes: HttpRoutes
}

export interface HttpServer {
  readonly host: string
  readonly port: number
  /** Ends connections too, also those that are being answered for long. */
  close(): Promise<void>
}

/** What a scraper, a probe or a page sends is short; more is refused with 413. */
const BODY_BYTES = 64 * 1024

/** @throws NET_LISTEN_FAILED */
export async function startHttpServer(options: HttpServerOptions): Promise<HttpServer> {
  const { host } = options
  const app = fastify({
    bodyLimit: BODY_BYTES,
    // Answers that never end (a stream of events) must not keep the process.
    forceCloseConnections: true,
    requestTimeout: 30_000,
  })
  options.routes(app)
  try {
    await app.listen({ host, port: options.port })
  } catch (error) {
    await app.close()
    const reason = (error as NodeJS.ErrnoException).code ?? String(error)
    throw engineError(
      'NET_LISTEN_FAILED',
      { address: `${host}:${options.port}`, reason },
      { cause: error },
    )
  }
  const address = app.server.address()
  const port = typeof address === 'object' && address ? address.port : options.port
  return { host, port, close: () => app.close() }
}
