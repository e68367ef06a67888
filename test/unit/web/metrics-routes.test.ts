import { afterEach, describe, expect, test } from 'vitest'
import { type HttpServer, startHttpServer } from '../../../src/web/http-server.js'
import { healthRoutes, metricsRoutes } from '../../../src/web/metrics-routes.js'

const open: HttpServer[] = []
afterEach(async () => {
  for (const server of open.splice(0)) await server.close()
})

async function serve(routes: Parameters<typeof startHttpServer>[0]['routes'], port = 0) {
  const server = await startHttpServer({ host: '127.0.0.1', port, routes })
  open.push(server)
  return server
}

const url = (server: HttpServer, path = '/metrics') => `http://127.0.0.1:${server.port}${path}`

describe('metrics over HTTP', () => {
  test('any path gives the scrape, in the form that was asked for', async () => {
    const server = await serve(
      metricsRoutes(async (accept) => ({ contentType: 'text/plain', body: `for ${accept}` })),
    )
    const answer = await fetch(url(server, '/whatever'), { headers: { accept: 'a/b' } })
    expect(answer.status).toBe(200)
    expect(answer.headers.get('content-type')).toContain('text/plain')
    expect(await answer.text()).toBe('for a/b')
  })

  test('health is 200 or 503, and says why', async () => {
    let isUp = true
    const server = await serve(
      healthRoutes(async () => ({ isUp, reason: isUp ? 'up' : 'no shard' })),
    )
    expect((await fetch(url(server))).status).toBe(200)
    isUp = false
    const down = await fetch(url(server))
    expect([down.status, await down.text()]).toEqual([503, 'no shard\n'])
  })

  test('a port in use is said as for clients', async () => {
    const first = await serve(healthRoutes(async () => ({ isUp: true, reason: 'up' })))
    const second = startHttpServer({ host: '127.0.0.1', port: first.port, routes: () => undefined })
    await expect(second).rejects.toMatchObject({ code: 'NET_LISTEN_FAILED' })
  })

  test('close ends an answer that goes on for ever', async () => {
    const server = await startHttpServer({
      host: '127.0.0.1',
      port: 0,
      routes: (app) => {
        app.get('/', (_request, reply) => {
          reply.hijack()
          reply.raw.write('begun')
        })
      },
    })
    const answer = await fetch(url(server, '/'))
    await server.close()
    await expect(answer.text()).rejects.toThrow()
  })
})
