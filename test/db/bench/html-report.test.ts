/** `bench --html`: one page, in the real Chromium, of a run in which a server dies. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { benchPage } from '../../../src/bench/report/bench-page.js'
import { type BenchRun, benchRun } from '../../support/bench-run.js'
import { openPage, overflow, seriousProblems, useChromium } from '../../support/chromium.js'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'

const directory = mkdtempSync(join(tmpdir(), 'pgshard-bench-html-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** A file whose path ends a script element and would run something. */
function hostileScript(): string {
  mkdirSync(join(directory, '<'))
  const path = join(directory, '<', 'script><img src=x onerror=console.error(1)>.sql')
  writeFileSync(path, 'SELECT 1;\n')
  return path
}

describe.skipIf(isMissing('chromium'))('in Chromium', () => {
  const postgres = usePostgres({ count: 2, own: true })
  const browser = useChromium()
  let run: BenchRun
  let path: string

  beforeAll(async () => {
    const { servers, user, database } = postgres()
    const hosts = servers.map(({ host }) => host).join(',')
    const ports = servers.map(({ port }) => port).join(',')
    const target = `host=${hosts} port=${ports} user=${user} dbname=${database} load_balance_hosts=random connect_timeout=5`
    const going = benchRun(target, {
      ...{ file: [hostileScript()], client: 4, connect: true, time: 4, reconnect: 60 },
      threshold: ['errors<100000', 'p50<0.001us'],
    })
    await postgres().query('SELECT pg_sleep(1.5)')
    process.kill(servers[1]!.pid, 'SIGKILL')
    run = await going
    path = join(directory, 'report.html')
    writeFileSync(path, benchPage(run))
  }, 60_000)

  test.each([
    ['light', 1200],
    ['dark', 390],
  ] as const)(
    '%s, %i pixels wide: says what happened, without a complaint',
    async (scheme, width) => {
      const { page, complaints, close } = await openPage(browser(), { scheme, width })
      await page.goto(pathToFileURL(path).href)
      await page.waitForSelector('canvas')
      expect(complaints).toEqual([])
      expect(await seriousProblems(page)).toEqual([])
      expect(await overflow(page)).toBeLessThanOrEqual(0)
      const text = await page.locator('main').textContent()
      expect(text).toContain('script><img src=x onerror')
      expect(text).toContain('Failed: p50<0.001us did not hold.')
      const dead = run.report.nodes[1]!
      const row = page.getByRole('region', { name: 'Nodes' }).getByRole('row', { name: dead.node })
      expect(await row.textContent()).toContain(`${(dead.share * 100).toFixed(1)} %`)
      const gaps = page.getByRole('region', { name: 'Gaps' }).getByRole('row', { name: dead.node })
      expect(await gaps.first().textContent()).toMatch(/not again.*08/)
      expect(await page.getByRole('region', { name: 'Errors' }).textContent()).toMatch(/08\w{3}/)
      const share = page.getByRole('img', { name: /Share of each node.*expected 50 %/ })
      expect(await share.locator('.mark').count()).toBe(2)
      const latency = page.locator('figure', { hasText: /^Latency/ })
      expect(await latency.getByRole('img').getAttribute('aria-label')).toMatch(/p50: now .* ms/)
      expect(await latency.textContent()).toContain(`Shaded: ${dead.node} stood still`)
      const sizes = page.getByRole('img', { name: /Transactions by latency/ })
      expect(await sizes.locator('.bar').count()).toBe(run.report.histogram.length)
      await close()
    },
  )
})
