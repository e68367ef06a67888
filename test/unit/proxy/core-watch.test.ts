import { expect, it } from 'vitest'
import { silentLog } from '../../../src/base/log.js'
import { watchCore } from '../../../src/proxy/core-watch.js'
import { FakeClock } from '../../support/fake-clock.js'

/** What is said when the process uses these shares of a core, ten seconds each. */
async function said(shares: readonly number[], cores = 4): Promise<string[]> {
  const clock = new FakeClock()
  const lines: string[] = []
  let used = 0
  const log = { ...silentLog, warn: (line: string) => void lines.push(line) }
  const stop = watchCore({ clock, log, cpuMs: () => used, cores })
  for (const share of shares) {
    used += share * 10_000
    await clock.advance(10_000)
  }
  stop()
  return lines
}

it('B28: advises workers, once, when one process uses a whole core for half a minute', async () => {
  expect(await said([0.98, 0.97, 0.99, 0.99, 0.99, 0.99, 0.99])).toEqual([
    'this process uses a whole core: serve --workers auto would use the others',
  ])
})

it('B28: says nothing of a short peak, of less, or where there is no other core', async () => {
  expect(await said([0.98, 0.97, 0.3, 0.99, 0.99, 0.2])).toEqual([])
  expect(await said([0.9, 0.9, 0.9, 0.9])).toEqual([])
  expect(await said([1, 1, 1, 1], 1)).toEqual([])
})
