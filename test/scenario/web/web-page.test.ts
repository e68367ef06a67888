/** The web page in the real Chromium: two workers under load, who gets in, with the keyboard alone, on a small screen, after a shard dies. */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { openPage, overflow, seriousProblems, useChromium } from '../../support/chromium.js'
import { type Served, startServe } from '../../support/serve.js'
import { bySize } from '../../support/test-size.js'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import {
  choose,
  hears,
  openWebPage,
  picture,
  views,
  WEB_TOKEN,
  webAddress,
  webSettings,
} from '../../support/web-page.js'

const sharded = `[[sharded_tables]]
database = "app"
name = "orders"
column = "tenant"
data_type = "bigint"`

/** Clients that read by key, and now and then over all shards, until they are told to stop. */
function startLoad(served: Served, count: number): { stop(): Promise<void>; done(): number } {
  let isStopped = false
  let done = 0
  const run = async (number: number): Promise<void> => {
    const client = new pg.Client({ connectionString: served.url, application_name: 'load' })
    client.on('error', () => undefined)
    await client.connect()
    for (let i = 0; !isStopped; i++) {
      const tenant = (number * 37 + i) % 300
      const sql =
        i % 10 === 0
          ? 'SELECT count(*) FROM orders'
          : `SELECT note FROM orders WHERE tenant = ${tenant}`
      await client.query(sql).then(
        () => done++,
        // a shard that is gone refuses at once: no endless turning
        () => systemClock.sleep(100),
      )
    }
    await client.end()
  }
  const loops = Array.from({ length: count }, (_, number) => run(number))
  return {
    done: () => done,
    stop: async () => {
      isStopped = true
      await Promise.allSettled(loops)
    },
  }
}

describe.skipIf(isMissing('chromium'))('the web page', () => {
  const postgres = usePostgres({ count: 3, own: true })
  const browser = useChromium()
  let served: Served
  let url: string
  let load: ReturnType<typeof startLoad> | undefined

  beforeAll(async () => {
    const { servers, database } = postgres()
    for (const server of servers.keys())
      await postgres().query('CREATE TABLE orders (tenant bigint, note text)', [], server)
    served = await startServe({
      shards: servers.map(({ host, port }) => ({ host, port, database })),
      tables: sharded,
      general: [...webSettings, 'idle_healthcheck_interval = 1000'],
      args: ['--workers', '2'],
    })
    url = await webAddress(served.program)
    for (let tenant = 0; tenant < 300; tenant += 10)
      await served.query(`INSERT INTO orders VALUES (${tenant}, 'secret word')`)
    const started = startLoad(served, 6)
    load = started
    await waitFor(() => started.done() > 100)
  }, 120_000)
  afterAll(() => load?.stop())

  test('only who brings the token gets in, and keeps a cookie that no script reads', async () => {
    const { page, complaints, close } = await openPage(browser())
    const statusOf = async (path: string) => (await page.request.get(url + path)).status()
    expect(await statusOf('')).toBe(401)
    expect(await statusOf('api/now')).toBe(401)
    expect(await statusOf('events')).toBe(401)
    expect(await statusOf(`?token=${WEB_TOKEN}x`)).toBe(403)
    await page.goto(`${url}?token=`).catch(() => undefined)
    expect(await seriousProblems(page)).toEqual([])
    await page.getByLabel('Token').fill('not this one, surely')
    await page.getByRole('button', { name: 'Open' }).click()
    await page.getByRole('alert').waitFor()
    const refusals = complaints.length
    await page.getByLabel('Token').fill(WEB_TOKEN)
    await page.getByRole('button', { name: 'Open' }).click()
    await hears(page, 1)
    const [cookie] = await page.context().cookies()
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict' })
    expect(cookie?.value).not.toContain(WEB_TOKEN)
    expect(await page.evaluate('document.cookie')).toBe('')
    expect(complaints.slice(refusals)).toEqual([])
    await page.goto(`${url}?token=${WEB_TOKEN}`)
    await hears(page, 1)
    expect(page.url()).not.toContain('token')
    await close()
    const bearer = { authorization: `Bearer ${WEB_TOKEN}` }
    const now = await fetch(`${url}api/now`, { headers: bearer })
    expect(now.status).toBe(200)
    expect(now.headers.get('content-security-policy')).toContain("default-src 'none'")
  })

  test('shows the load of both workers: rates, latencies, clients, statements without literals', async () => {
    const { page, complaints, close } = await openWebPage(browser(), url)
    await hears(page, 3)
    const figure = (name: string) =>
      page.locator('#figures div', { hasText: name }).locator('dd').textContent()
    expect(Number.parseFloat((await figure('Transactions')) ?? '')).toBeGreaterThan(0)
    expect(await figure('99th percentile')).toMatch(/^[\d.]+ (?:ms|s)$/)
    expect(Number(await figure('Clients'))).toBeGreaterThanOrEqual(6)
    for (const shard of [0, 1, 2])
      expect(await page.locator('#chart-p99 .legend').textContent()).toContain(`app shard ${shard}`)
    expect(await page.locator('#chart-p50 .legend').textContent()).toContain('app over shards')
    await page.getByLabel('Lines').selectOption('pools')
    await page.getByText('postgres@app shard 1').first().waitFor()
    await picture(page, 'web-overview')

    await choose(page, 'workers')
    const workers = page.getByRole('region', { name: 'Processes of this proxy' })
    await waitFor(async () => (await workers.getByText('ready').count()) === 2)

    const marked = 'SELECT note, 1 AS marked FROM orders WHERE tenant = '
    for (let i = 0; i < 20; i++) await served.query(`${marked}${i}`)
    await choose(page, 'statements')
    await hears(page, 2)
    const row = page.getByRole('row', {
      name: 'SELECT note, ? AS marked FROM orders WHERE tenant = ?',
    })
    // each was asked on a connection of its own, so that both workers had some
    expect(await row.locator('td').allTextContents()).toEqual(
      expect.arrayContaining(['app', 'one shard', '1', '20', '0']),
    )
    const scattered = page.getByRole('row', { name: /^SELECT count\(\*\) FROM orders/ })
    expect(await scattered.locator('td').allTextContents()).toEqual(
      expect.arrayContaining(['merge', '3']),
    )
    expect(await page.locator('#panel-statements').textContent()).not.toContain('secret word')
    await page.getByLabel('only those that several shards work for').check()
    await waitFor(async () => (await row.count()) === 0)
    expect(await scattered.count()).toBe(1)

    await choose(page, 'clients')
    await hears(page, 1)
    const clients = page.getByRole('region', { name: 'Clients' })
    expect(await clients.getByRole('cell', { name: 'load' }).count()).toBe(6)
    expect(complaints).toEqual([])
    await close()
  })

  const looks: readonly (readonly ['light' | 'dark', number])[] = bySize(
    [
      ['light', 1280],
      ['dark', 390],
    ],
    [
      ['light', 1280],
      ['dark', 1280],
      ['light', 390],
      ['dark', 390],
    ],
  )

  test.each(looks)(
    '%s, %i pixels: axe finds nothing serious, nothing is cut off',
    async (scheme, width) => {
      const { page, complaints, close } = await openWebPage(browser(), url, {
        ...{ scheme, width, isCalm: true },
        height: 800,
      })
      for (const view of views) {
        await choose(page, view)
        expect(await seriousProblems(page), view).toEqual([])
        expect(await overflow(page), view).toBeLessThanOrEqual(0)
      }
      expect(complaints).toEqual([])
      await close()
    },
  )

  test('can be used with the keyboard alone', async () => {
    const { page, complaints, close } = await openWebPage(browser(), url)
    const focused = () =>
      page.evaluate('document.activeElement.id || document.activeElement.textContent')
    const press = (...keys: string[]) =>
      keys.reduce((before, key) => before.then(() => page.keyboard.press(key)), Promise.resolve())
    await press('Tab')
    expect(await focused()).toBe('Skip to the content')
    const outline = await page.evaluate('getComputedStyle(document.activeElement).outlineStyle')
    expect(outline).toBe('solid')
    await press('Enter')
    expect(await focused()).toBe('content')
    await page.locator('#hold').focus()
    await press('Tab')
    expect(await focused()).toBe('tab-overview')
    await press('ArrowRight', 'ArrowRight')
    expect(await focused()).toBe('tab-pools')
    expect(await page.locator('#panel-pools').isVisible()).toBe(true)
    expect(await page.locator('#panel-overview').isVisible()).toBe(false)
    await press('End', 'ArrowRight')
    expect(await focused()).toBe('tab-overview')
    await press('ArrowLeft')
    expect(await focused()).toBe('tab-workers')
    await hears(page, 1)
    await press('Tab', 'Tab')
    expect(await focused()).toBe('Worker')
    await press('Enter')
    const heads = page.locator('#panel-workers th')
    expect(await heads.first().getAttribute('aria-sort')).toBe('descending')
    const first = page.locator('#panel-workers tbody th').first()
    expect(await first.textContent()).toBe('1')
    // the row is told anew every second, and the focus stays where it is
    await hears(page, 2)
    expect(await focused()).toBe('Worker')
    await page.locator('#hold').focus()
    await press('Enter')
    expect(await page.locator('#live').textContent()).toBe('held')
    expect(complaints).toEqual([])
    await close()
  })

  test('says in words that a shard died, and since when', async () => {
    const { page, complaints, close } = await openWebPage(browser(), url)
    expect(await page.locator('#problems li').count()).toBe(0)
    const lost = postgres().servers[2]!
    process.kill(lost.pid, 'SIGKILL')
    const banner = page.locator('#problems li', { hasText: 'Shard 2 of "app" cannot be reached' })
    await banner.waitFor({ timeout: 30_000 })
    expect(await banner.getAttribute('data-level')).toBe('bad')
    expect(await banner.textContent()).toMatch(
      new RegExp(
        `since \\d\\d:\\d\\d:\\d\\d: its primary 127\\.0\\.0\\.1:${lost.port} does not answer`,
      ),
    )
    expect(await page.title()).toMatch(/^\(\d+\) pgshard$/)
    await choose(page, 'hosts')
    await hears(page, 1)
    const row = page.getByRole('row', { name: `127.0.0.1:${lost.port}` })
    expect(await row.textContent()).toContain('cannot be reached')
    expect(await seriousProblems(page)).toEqual([])
    await picture(page, 'web-shard-lost')
    // its clients may be heard to fail, the page itself not
    expect(complaints).toEqual([])
    await close()
  })
})
