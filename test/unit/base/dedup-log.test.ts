import { expect, test } from 'vitest'
import { dedupLog } from '../../../src/base/dedup-log.js'
import { openLog } from '../../../src/base/log.js'
import { FakeClock } from '../../support/fake-clock.js'

function start(threshold: number, windowMs = 1000) {
  const lines: Record<string, unknown>[] = []
  const write = (line: string) => void lines.push(JSON.parse(line))
  const clock = new FakeClock()
  const log = dedupLog(openLog({ json: true, write }), { clock, windowMs, threshold })
  return { log, clock, said: () => lines.map(({ msg, repeated, n }) => [msg, n, repeated]) }
}

test('lines beyond the threshold are counted and told when the window ends', async () => {
  const { log, clock, said } = start(1)
  for (let i = 0; i < 5; i++) log.warn('down', { n: 1 })
  log.warn('down', { n: 2 })
  expect(said()).toEqual([
    ['down', 1, undefined],
    ['down', 1, undefined],
    ['down', 2, undefined],
  ])
  await clock.advance(1000)
  expect(said().slice(3)).toEqual([['down', 1, 3]])
  log.warn('down', { n: 1 })
  expect(said().slice(4)).toEqual([['down', 1, undefined]])
})

test('levels and children are told apart; a window of 0 holds nothing back', () => {
  const { log, said } = start(0)
  log.info('x')
  log.warn('x')
  log.child({ n: 7 }).info('x')
  expect(said()).toHaveLength(3)
  const off = start(0, 0)
  for (let i = 0; i < 3; i++) off.log.info('x')
  expect(off.said()).toHaveLength(3)
})
