/** The web page while a database moves: its steps, its tables, its charts, and the pause of its cutover. */
import { describe, expect, test } from 'vitest'
import { seriousProblems, useChromium } from '../../support/chromium.js'
import { consoleUrl, makeShop, move, startWriters } from '../../support/live-shop.js'
import { runCli, startCli } from '../../support/run-cli.js'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { choose, openWebPage, picture, webAddress, webSettings } from '../../support/web-page.js'

describe.skipIf(isMissing('chromium'))('the web page', () => {
  const browser = useChromium()
  const postgres = usePostgres({
    version: 15,
    settings: { max_wal_senders: '40', max_replication_slots: '40' },
  })

  test('shows a move from its copy to its cutover', async () => {
    const shop = await makeShop(postgres(), 2, 3, webSettings)
    const serve = startCli(['serve', '--config', shop.config, '--users', shop.users])
    const url = await webAddress(serve)
    const [, port] = await serve.waitForOutput(/listening on 127\.0\.0\.1:(\d+)/)
    const writers = startWriters(postgres(), Number(port), 3)
    await waitFor(() => writers.model.size > 100)
    const { page, complaints, close } = await openWebPage(browser(), url, { view: 'moves' })
    await page.getByText('There was no move.').waitFor()
    const run = await runCli(
      [
        ...['reshard', 'run', '--config', shop.config, ...move, '--yes', '--json'],
        ...['--proxy', consoleUrl(Number(port)), '--budget-ms', '15000'],
      ],
      { timeoutMs: 120_000 },
    )
    expect(run.code, run.stderr).toBe(0)
    const section = page.getByRole('region', { name: /^Move / })
    const figure = (name: string) =>
      section.locator('dl div', { hasText: name }).first().locator('dd').textContent()
    await waitFor(async () => (await figure('State')) === 'cut_over', { deadlineMs: 30_000 })
    expect(await section.getByRole('heading').first().textContent()).toBe('shop to shop_new')
    const row = section.getByRole('row', { name: 'public.acct' })
    expect(await row.textContent()).toContain('verified')
    await section.getByRole('img', { name: /Steps of the cutover/ }).waitFor()
    expect(Number.parseFloat((await figure('Write pause')) ?? '')).toBeGreaterThan(0)
    expect(await seriousProblems(page)).toEqual([])
    await picture(page, 'web-move')
    await choose(page, 'overview')
    expect(complaints).toEqual([])
    await close()
    await writers.stop()
    await serve.stop()
  }, 240_000)
})
