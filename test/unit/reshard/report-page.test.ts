import { execFile } from 'node:child_process'
import { mkdtemp, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { describe, expect, test } from 'vitest'
import type { Sample } from '../../../src/reshard/guards/sample-store.js'
import { reportPage } from '../../../src/reshard/report/report-page.js'
import { findTool, isMissing } from '../../support/tools.js'

const samples = Array.from(
  { length: 120 },
  (_, i): Sample => ({
    atMs: 1_800_000_000_000 + i * 1000,
    copiedBytes: i * 40_000_000,
    changes: i * i * 100,
    lagBytes: Math.abs(60 - i) * 1_000_000,
    walKept: i * 5_000_000,
    latencyMs: 1 + (i % 7),
    isHeld: i > 30 && i < 45,
  }),
)

const page = reportPage({
  from: 'shop',
  to: 'shop_<new>',
  samples,
  status: {
    run: 'a1b2c3d4',
    state: 'cut_over',
    step: 'finish',
    next: '"shop" is served by the new shards',
    tables: [
      {
        name: 'public.orders',
        rows: 1234567,
        bytes: 987654321,
        total_bytes: 1e9,
        state: 'verified',
      },
      {
        name: `public.${'very_long_name_'.repeat(4)}`,
        rows: 3,
        bytes: 12,
        total_bytes: 8192,
        state: 'different',
      },
    ],
    lag_bytes: null,
    eta_s: null,
    error: '<script>alert(1)</script>',
    left: [],
    facts: {
      write_pause_ms: 61,
      cutover_steps: [
        { step: 'pausing the proxies', ms: 12.3 },
        { step: 'locking the tables', ms: 4.1 },
        { step: 'applying the rest', ms: 30.2 },
      ],
    },
  } as never,
})

test('the report stands by itself: nothing is loaded, nothing runs, names are text', () => {
  expect(page).not.toMatch(/<script|src=|href=|url\(|@import/i)
  expect(page).toContain('shop_&#60;new&#62;')
  expect(page).toContain('1,234,567')
  expect(page.match(/<svg /g)).toHaveLength(6)
})

test('a run that kept nothing and had no cutover says so', () => {
  const bare = reportPage({
    from: 'a',
    to: 'b',
    samples: [],
    status: {
      run: 'r',
      state: 'planned',
      next: '',
      tables: [],
      lag_bytes: 5,
      left: ['slot x'],
      error: null,
      facts: {},
    } as never,
  })
  expect(bare).toContain('Nothing was kept of this run')
  expect(bare).toContain('There was no cutover yet')
  expect(bare).toContain('slot x')
})

/** Measures the page in the browser and leaves what it found in its DOM. */
const measure = `<script>addEventListener('load', () => {
  const box = (one) => { const { width, height } = one.getBBox(); return [Math.round(width), Math.round(height)] }
  const pre = document.createElement('pre'); pre.id = 'measured'
  pre.textContent = JSON.stringify({
    overflow: document.documentElement.scrollWidth - innerWidth,
    lines: [...document.querySelectorAll('.line')].map(box), bars: document.querySelectorAll('.bar').length,
    waits: document.querySelectorAll('.wait').length,
    paper: getComputedStyle(document.body).backgroundColor, ink: getComputedStyle(document.body).color })
  document.body.append(pre) })</script>`

async function inChromium(width: number, isDark: boolean): Promise<Record<string, unknown>> {
  const directory = await mkdtemp(join(tmpdir(), 'pgshard-report-'))
  const path = join(directory, 'report.html')
  await writeFile(path, page.replace('</body>', `${measure}</body>`))
  const { stdout } = await promisify(execFile)(
    findTool('chromium') as string,
    [
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-dev-shm-usage',
      `--user-data-dir=${join(directory, 'profile')}`,
      `--window-size=${width},900`,
      `--blink-settings=preferredColorScheme=${isDark ? 0 : 1}`,
      '--dump-dom',
      `file://${path}`,
    ],
    { timeout: 90_000, maxBuffer: 10 << 20 },
  )
  const found = /<pre id="measured">(.*?)<\/pre>/.exec(stdout)?.[1] ?? '{}'
  return JSON.parse(found.replaceAll('&quot;', '"')) as Record<string, unknown>
}

describe.skipIf(isMissing('chromium'))('in Chromium', () => {
  test.each([
    ['light', 1200],
    ['dark', 600],
  ] as const)(
    '%s, %i pixels wide: all charts are drawn and nothing is cut off',
    async (scheme, width) => {
      const seen = await inChromium(width, scheme === 'dark')
      expect(seen).toMatchObject({
        bars: 3,
        waits: 5,
        paper: scheme === 'dark' ? 'rgb(13, 17, 23)' : 'rgb(255, 255, 255)',
        ink: scheme === 'dark' ? 'rgb(230, 237, 243)' : 'rgb(27, 31, 36)',
      })
      expect(seen['overflow']).toBeLessThanOrEqual(0)
      const lines = seen['lines'] as [number, number][]
      expect(lines).toHaveLength(5)
      for (const [drawn, high] of lines) {
        expect(drawn).toBeGreaterThan(500)
        expect(high).toBeGreaterThan(10)
      }
    },
    120_000,
  )
})
