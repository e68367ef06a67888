/** hard-parts §8.4: nobody is paused for a cutover that could not be taken back, unless that was given up in words. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import { noSwitch } from '../../../src/reshard/cutover/switch-config.js'
import type { TrafficGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { continueReshard } from '../../../src/reshard/reshard.js'
import { everywhere, on, useSides } from './move-rig.js'

const { side } = useSides()

test('O3: a cutover that cannot arm a way back refuses before anyone is paused', async () => {
  const [source, target] = [await side('a', 1), await side('b', 2)]
  await everywhere(
    source,
    `CREATE TABLE orders (tenant bigint, note text); ALTER TABLE orders REPLICA IDENTITY FULL;
     INSERT INTO orders SELECT i, 'x' FROM generate_series(1, 100) i`,
  )
  const said: string[] = []
  const say = (word: string) => async () => void said.push(word)
  const gate: TrafficGate = {
    ...{ open: say('open'), pause: say('pause'), reload: say('reload') },
    ...{ resume: say('resume'), close: say('close') },
  }
  const move = (more: { stopAfter?: 'verify'; wayBack?: boolean }) =>
    continueReshard({
      ...{ source, target, gate, config: noSwitch, clock: systemClock, log: silentLog },
      ...{ listener: { step: () => undefined }, jobs: 1, budgetMs: 20_000, verifyHoldMs: 5000 },
      ...more,
    })
  expect((await move({ stopAfter: 'verify' })).state).toBe('ready')
  await expect(move({})).rejects.toMatchObject({
    code: 'RESHARD_NO_WAY_BACK',
    message: expect.stringContaining('has no primary key'),
  })
  expect(said).not.toContain('pause')
  // Clients of the old side go on.
  await on(source.shards[0]!, `INSERT INTO orders VALUES (7, 'written after the refusal')`)
  const report = await move({ wayBack: false })
  expect(report).toMatchObject({ state: 'cut_over', cutover: { wayBack: false } })
  expect(said).toContain('pause')
  const [first, second] = await everywhere(target, 'SELECT count(*)::int AS n FROM orders')
  expect(Number(first?.[0]?.['n']) + Number(second?.[0]?.['n'])).toBe(101)
}, 60_000)
