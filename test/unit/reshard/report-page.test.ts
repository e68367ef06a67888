import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Page } from 'playwright-core'
import { describe, expect, test } from 'vitest'
import type { Sample } from '../../../src/reshard/guards/sample-store.js'
import { reportPage } from '../../../src/reshard/report/report-page.js'
import { openPage, overflow, seriousProblems, useChromium } from '../../support/chromium.js'
import { isMissing } from '../../support/tools.js'

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

test('the report stands by itself: nothing is loaded, only its own scripts may run, names are text', () => {
  expect(page).not.toMatch(/\bsrc=|\bhref=|url\(|@import/i)
  expect(page).toContain('shop_&#60;new&#62;')
  expect(page).toContain('1,234,567')
  expect(page).not.toContain('<script>alert')
  expect(page.match(/data-chart="/g)).toHaveLength(6)
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

function fileOf(text: string): string {
  const path = join(mkdtempSync(join(tmpdir(), 'pgshard-report-')), 'report.html')
  writeFileSync(path, text)
  return path
}

/** Of the pixels of the first chart's drawing, those that are not empty. */
const paintedShare = (tab: Page): Promise<number> =>
  tab.evaluate(`{
    const canvas = document.querySelector('canvas')
    const { data } = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height)
    data.filter((value, i) => i % 4 === 3 && value !== 0).length / (data.length / 4)
  }`)

describe.skipIf(isMissing('chromium'))('in Chromium', () => {
  const browser = useChromium()

  test.each([
    ['light', 1200],
    ['dark', 390],
  ] as const)(
    '%s, %i pixels wide: all charts are drawn, nothing is cut off, no complaint',
    async (scheme, width) => {
      const { page: tab, complaints, close } = await openPage(browser(), { scheme, width })
      await tab.goto(pathToFileURL(fileOf(page)).href)
      await tab.getByRole('img', { name: /Steps of the cutover/ }).waitFor()
      expect(await tab.locator('figure').count()).toBe(6)
      expect(complaints).toEqual([])
      expect(await overflow(tab)).toBeLessThanOrEqual(0)
      expect(await seriousProblems(tab)).toEqual([])
      expect(await tab.locator('canvas').count()).toBe(5)
      expect(await tab.locator('svg .bar').count()).toBe(3)
      expect(await paintedShare(tab)).toBeGreaterThan(0.001)
      expect(
        await tab
          .getByRole('img', { name: /Steps of the cutover\. 46\.6 ms if one after the other/ })
          .count(),
      ).toBe(1)
      const legend = tab.locator('figure', { hasText: 'Behind the sources' }).locator('.legend')
      expect(await legend.textContent()).toContain('59 MB')
      await close()
    },
    120_000,
  )
})
