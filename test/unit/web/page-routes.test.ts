/** The page over HTTP: who gets in, under which policy; and how often the proxy is looked at for it. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { silentLog } from '../../../src/base/log.js'
import { Feed, type FeedMessage } from '../../../src/web/feed.js'
import { type HttpServer, startHttpServer } from '../../../src/web/http-server.js'
import { pageRoutes } from '../../../src/web/page-routes.js'
import { makeToken, WebAccess } from '../../../src/web/web-token.js'
import { FakeClock, settled } from '../../support/fake-clock.js'
import { fakeProxy } from '../admin/fake-proxy.js'

const token = makeToken()
const noMoves = { tasks: [], copies: [], slots: [] }
const clock = new FakeClock()
const feed = new Feed({
  ...{ clock, log: silentLog, look: () => fakeProxy().view },
  moves: async () => noMoves,
})
let server: HttpServer
let url: string

beforeAll(async () => {
  const routes = pageRoutes(feed, new WebAccess(token))
  server = await startHttpServer({ host: '127.0.0.1', port: 0, routes })
  url = `http://127.0.0.1:${server.port}`
})
afterAll(() => server.close())

const get = (path: string, headers: Record<string, string> = {}) =>
  fetch(url + path, { headers, redirect: 'manual' })

test('nothing of the proxy without the token; the door asks for it', async () => {
  expect((await get('/')).status).toBe(401)
  expect(await (await get('/')).text()).toContain('needs the token')
  expect((await get('/?token=wrong')).status).toBe(403)
  for (const path of ['/api/now', '/events']) {
    expect((await get(path)).status, path).toBe(401)
    expect((await get(path, { cookie: `pgshard_${server.port}=${token}` })).status).toBe(401)
  }
  expect((await get('/package.json')).status).toBe(404)
  expect((await get('/../package.json')).status).toBe(404)
})

test('the token gives a cookie that opens everything, and a form takes it too', async () => {
  const page = await get(`/?token=${token}`)
  expect(page.status).toBe(200)
  const cookie = page.headers.get('set-cookie') ?? ''
  expect(cookie).toMatch(/; HttpOnly; SameSite=Strict$/)
  expect(cookie).not.toContain(token)
  const known = { cookie: cookie.split(';')[0] as string }
  expect((await get('/', known)).status).toBe(200)
  const now = (await (await get('/api/now', known)).json()) as FeedMessage
  expect(now.board.clients[0]).toMatchObject({ user: 'alice', state: 'active' })
  const send = (body: string) =>
    fetch(url, { method: 'POST', body: new URLSearchParams({ token: body }), redirect: 'manual' })
  expect((await send('wrong')).status).toBe(403)
  const isIn = await send(token)
  expect([isIn.status, isIn.headers.get('location')]).toEqual([303, '/'])
})

test('every answer has the policy, and every file that the page names is there', async () => {
  const page = await (await get(`/?token=${token}`)).text()
  const files = [...page.matchAll(/(?:src|href)="\/([^"]+)"/g)].map((match) => `/${match[1]}`)
  expect(files.length).toBeGreaterThan(4)
  for (const path of [...files, '/', '/api/now', '/overview.js', '/nowhere']) {
    const answer = await get(path)
    const policy = answer.headers.get('content-security-policy') ?? ''
    expect(policy, path).toContain("default-src 'none'; script-src 'self'; style-src 'self'")
    expect(policy, path).not.toContain('unsafe')
    expect(answer.headers.get('x-content-type-options'), path).toBe('nosniff')
  }
  for (const path of files) expect((await get(path)).status, path).toBe(200)
  const scripts = await Promise.all(
    ['/app.js', '/overview.js', '/panels.js', '/table.js', '/charts.js'].map(async (path) =>
      (await get(path)).text(),
    ),
  )
  for (const [, path] of scripts.join('\n').matchAll(/from '\.(\/[^']+)'/g))
    expect((await get(path as string)).status, path).toBe(200)
})

test('the proxy is looked at every second while somebody watches, every five when nobody does', async () => {
  const own = new FakeClock()
  let looks = 0
  let moves = 0
  const watched = new Feed({
    ...{ clock: own, log: silentLog },
    look: () => {
      looks++
      return { ...fakeProxy().view, nowMs: () => own.nowMs() }
    },
    moves: async () => {
      moves++
      return noMoves
    },
  })
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= 500) {
      await own.advance(500)
      await settled()
    }
  }
  watched.start()
  await pass(20_000)
  expect([looks, moves]).toEqual([5, 0])
  const heard: FeedMessage[] = []
  const end = watched.watch((message) => heard.push(message))
  expect(heard[0]).toMatchObject({ isWhole: true })
  expect(heard[0]?.points).toHaveLength(5)
  await pass(6000)
  expect(looks).toBeGreaterThanOrEqual(10)
  expect(moves).toBeGreaterThanOrEqual(2)
  expect(heard.at(-1)).toMatchObject({ isWhole: false, moves: noMoves })
  expect(heard.at(-1)?.points).toHaveLength(1)
  end()
  const [before, told] = [looks, heard.length]
  await pass(10_000)
  expect(looks - before).toBeLessThanOrEqual(3)
  expect(heard).toHaveLength(told)
  watched.stop()
  await pass(10_000)
  expect(looks - before).toBeLessThanOrEqual(3)
})
