/** The real Chromium, driven by playwright-core, with everything that a page complains about. */
import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { afterAll, beforeAll } from 'vitest'
import { findTool } from './tools.js'

export interface WatchedPage {
  readonly page: Page
  /** Console errors, uncaught errors, violations of the policy, and requests that left this machine. */
  readonly complaints: readonly string[]
  close(): Promise<void>
}

export interface PageOptions {
  readonly scheme?: 'light' | 'dark'
  readonly width?: number
  readonly height?: number
  /** Reduced motion is asked for. */
  readonly isCalm?: boolean
}

/** One browser for all tests of a file or a describe block. */
export function useChromium(): () => Browser {
  let running: Browser | undefined
  beforeAll(async () => {
    running = await chromium.launch({
      executablePath: findTool('chromium') as string,
      args: ['--no-sandbox', '--disable-dev-shm-usage', '--disable-gpu'],
      timeout: 90_000,
    })
  }, 120_000)
  afterAll(() => running?.close())
  return () => {
    if (!running) throw new Error('Chromium is started in beforeAll; it is not there yet')
    return running
  }
}

const isElsewhere = (url: string): boolean =>
  !/^(?:file|data|blob|about):/.test(url) && new URL(url).hostname !== '127.0.0.1'

/** Scripts for the page are texts: the tests' own types know no browser. */
const tellViolations = `document.addEventListener('securitypolicyviolation', (event) =>
  console.error('policy: ' + event.violatedDirective + ' ' + event.blockedURI + ' ' + event.sample))`

/** A page of its own profile: no cookie, no cache of another test. */
export async function openPage(browser: Browser, options: PageOptions = {}): Promise<WatchedPage> {
  const context = await browser.newContext({
    colorScheme: options.scheme ?? 'light',
    reducedMotion: options.isCalm ? 'reduce' : 'no-preference',
    viewport: { width: options.width ?? 1280, height: options.height ?? 900 },
  })
  const complaints: string[] = []
  const page = await context.newPage()
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text())
  })
  page.on('pageerror', (error) => complaints.push(String(error)))
  page.on('request', (request) => {
    if (isElsewhere(request.url())) complaints.push(`asks ${request.url()}`)
  })
  await page.addInitScript(tellViolations)
  return { page, complaints, close: () => context.close() }
}

/** What axe finds serious or critical on the page as it is now, one line each. */
export async function seriousProblems(page: Page): Promise<string[]> {
  await page.evaluate(axe.source)
  const found: { id: string; impact: string; nodes: string[] }[] = await page.evaluate(
    `axe.run(document).then(({ violations }) => violations.map(({ id, impact, nodes }) => (
      { id, impact, nodes: nodes.map(({ target }) => target.join(' ')) })))`,
  )
  return found
    .filter(({ impact }) => impact === 'serious' || impact === 'critical')
    .map(({ id, impact, nodes }) => `${impact} ${id}: ${nodes.join(' | ')}`)
}

/** Pixels by which the page is wider than its window. */
export const overflow = (page: Page): Promise<number> =>
  page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
