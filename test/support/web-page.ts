/** The web page of a running `serve`, open in Chromium; and pictures of it for docs/. */
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { openPage, type PageOptions, type WatchedPage } from './chromium.js'
import { type CliProgram, projectRoot } from './run-cli.js'
import { waitFor } from './wait-for.js'

export const WEB_TOKEN = 'a-token-for-tests-only'

/** Lines of [general] for a page on a free port. */
export const webSettings = ['web_port = 0', `web_token = "${WEB_TOKEN}"`]

/** Where the page is, as serve has said. */
export async function webAddress(program: CliProgram): Promise<string> {
  const [, url] = await program.waitForOutput(/web page on (http:\/\/\S+)/, 60_000)
  return url as string
}

/** The page of one who brought the token, once it has heard of the proxy. */
export async function openWebPage(
  browser: Browser,
  url: string,
  options: PageOptions & { readonly view?: string } = {},
): Promise<WatchedPage> {
  const opened = await openPage(browser, options)
  const view = options.view === undefined ? '' : `#${options.view}`
  await opened.page.goto(`${url}?token=${WEB_TOKEN}${view}`)
  await hears(opened.page, 1)
  return opened
}

/** Waits until the page was told of so many moments more. Asked from here: the page's policy lets nobody poll inside it. */
export async function hears(page: Page, more: number): Promise<void> {
  await page.locator('#tab-overview').waitFor()
  const heard = () => page.evaluate('Number(document.body.dataset.heard ?? 0)') as Promise<number>
  const first = await heard()
  await waitFor(async () => (await heard()) >= first + more, { deadlineMs: 60_000 })
}

export const views = [
  'overview',
  'hosts',
  'pools',
  'clients',
  'statements',
  'transactions',
  'moves',
  'workers',
] as const

export async function choose(page: Page, view: (typeof views)[number]): Promise<void> {
  await page.locator(`#tab-${view}`).click()
  await page.locator(`#panel-${view}`).waitFor({ state: 'visible' })
}

/** For docs/, with PGSHARD_PICTURES=1; otherwise nothing is written. */
export async function picture(page: Page, name: string): Promise<void> {
  if (process.env['PGSHARD_PICTURES'] !== '1') return
  const folder = join(projectRoot, 'docs', 'images')
  mkdirSync(folder, { recursive: true })
  await page.screenshot({ path: join(folder, `${name}.png`) })
}
