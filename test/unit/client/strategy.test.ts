import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import {
  isCommunicationError,
  loadChecker,
  standardChecker,
} from '../../../src/client/exception-checker.js'
import { HostBook } from '../../../src/client/host-book.js'
import { pickHost } from '../../../src/client/pick-host.js'
import {
  type BalanceStrategy,
  builtInStrategy,
  loadStrategy,
  type StrategyView,
} from '../../../src/client/strategy.js'
import type { Conninfo } from '../../../src/topology/conninfo.js'
import { Prng } from '../../../src/topology/prng.js'
import { FakeClock } from '../../support/fake-clock.js'
import { waitFor } from '../../support/wait-for.js'

const conninfo = (...ports: number[]): Conninfo => ({
  hosts: ports.map((port) => ({ host: 'h', port })),
  user: 'u',
  database: 'd',
  targetSessionAttrs: 'any',
  loadBalanceHosts: 'disable',
  tls: { mode: 'disable' },
  keepAlive: true,
  startupParameters: {},
})

const lost = Object.assign(new Error('reset'), { code: 'ECONNRESET' })

/** Picks with a strategy over hosts h:1, h:2, …; those of `down` cannot be reached. */
function rig(strategy: BalanceStrategy, ports: number[], retriesAllDown = 1) {
  const clock = new FakeClock()
  const book = new HostBook(conninfo(...ports), clock)
  const random = Prng.ofSeed(7n)
  const down = new Set<string>()
  const asked: string[] = []
  const pick = async (): Promise<string> => {
    const options = { book, strategy, random, clock, retriesAllDown, blocklistTimeoutMs: 5000 }
    const { taken } = await pickHost(options, async (index) => {
      asked.push(book.name(index))
      if (down.has(book.name(index))) throw lost
      return book.name(index)
    })
    return taken
  }
  return { clock, book, down, asked, pick }
}

async function shares(pick: () => Promise<string>, times: number): Promise<Record<string, number>> {
  const counts: Record<string, number> = {}
  for (let n = 0; n < times; n++) {
    const name = await pick()
    counts[name] = (counts[name] ?? 0) + 1
  }
  return counts
}

describe('strategies', () => {
  it('J7, J11: random spreads by weight, and leaves a dead host', async () => {
    const { pick, down, asked } = rig(builtInStrategy('random'), [1, 2, 3, 3])
    const counts = await shares(pick, 4000)
    expect(counts['h:1']).toBeGreaterThan(900)
    expect(counts['h:1']).toBeLessThan(1100)
    expect(counts['h:3']).toBeGreaterThan(1880)
    expect(counts['h:3']).toBeLessThan(2120)
    down.add('h:3')
    asked.length = 0
    const left = await shares(pick, 1000)
    expect(left['h:3']).toBeUndefined()
    expect(asked.filter((name) => name === 'h:3')).toHaveLength(1)
  })

  it('round robin takes turns by weight, wherever it starts', async () => {
    const { pick } = rig(builtInStrategy('round_robin'), [1, 2, 2, 3])
    expect(await shares(pick, 40)).toEqual({ 'h:1': 10, 'h:2': 20, 'h:3': 10 })
  })

  it('J7, J49: best response time takes the unmeasured first, then the quickest, and forgets', async () => {
    const { pick, book, clock } = rig(builtInStrategy('best_response_time'), [1, 2, 3])
    expect(await pick()).toBe('h:1')
    book.answered(0, 5)
    expect(await pick()).toBe('h:2')
    book.answered(1, 2)
    expect(await pick()).toBe('h:3')
    book.answered(2, 9)
    expect(await pick()).toBe('h:2')
    // what was slow once is tried again when nobody has looked for long
    await clock.advance(40_000)
    book.answered(1, 2)
    expect(await pick()).toBe('h:1')
  })

  it('J7: server affinity keeps to its order as far as it goes', async () => {
    const { pick, down, clock } = rig(builtInStrategy('server_affinity', ['h:2', 'h:3']), [1, 2, 3])
    expect(await pick()).toBe('h:2')
    down.add('h:2')
    expect(await pick()).toBe('h:3')
    down.add('h:3')
    expect(await pick()).toBe('h:1')
    down.clear()
    expect(await pick()).toBe('h:1')
    await clock.advance(6000)
    expect(await pick()).toBe('h:2')
  })

  it('J11, J38: all dead: an error after the allowed rounds', async () => {
    const { pick, down, asked, clock } = rig(builtInStrategy('random'), [1, 2], 3)
    down.add('h:1').add('h:2')
    const failed = expect(pick()).rejects.toMatchObject({
      code: 'CLIENT_ALL_DOWN',
      sqlstate: '08001',
    })
    for (let round = 1; round <= 3; round++) await clock.advance(250)
    await failed
    expect(asked.length).toBe(6)
  })

  it('J12, J13: what a server answered is thrown at once', async () => {
    const { book, clock } = rig(builtInStrategy('random'), [1, 2])
    const rejected = Object.assign(new Error('wrong password'), { code: '28P01' })
    const asked: number[] = []
    const options = {
      ...{ book, clock, retriesAllDown: 9, blocklistTimeoutMs: 5000 },
      strategy: builtInStrategy('round_robin'),
      random: Prng.ofSeed(1n),
    }
    const picked = pickHost(options, async (index) => {
      asked.push(index)
      throw rejected
    })
    await expect(picked).rejects.toBe(rejected)
    expect(asked).toHaveLength(1)
  })

  it('J4, J5: sees frozen copies', async () => {
    const seen: StrategyView[] = []
    const pickFirst = (view: StrategyView) => {
      seen.push(view)
      return view.candidates[0] as number
    }
    const { pick, book } = rig({ pick: pickFirst }, [1, 2])
    book.answered(0, 3)
    await pick()
    const [view] = seen as [StrategyView]
    expect(Object.isFrozen(view)).toBe(true)
    const lists = Object.entries(view).filter(([, value]) => Array.isArray(value))
    expect(lists.length).toBeGreaterThanOrEqual(6)
    expect(lists.filter(([, list]) => !Object.isFrozen(list)).map(([name]) => name)).toEqual([])
    expect(() => (view.hosts as string[]).push('h:9')).toThrow(TypeError)
    expect(() => (view.responseTimesMs as number[]).fill(0)).toThrow(TypeError)
    expect(book.statistics()[0]?.responseMs).toBe(3)
  })

  it('J8: another is loaded by the path of its module, and a bad one is named', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'strategy-'))
    const path = join(folder, 'last.mjs')
    writeFileSync(path, 'export default class { pick(view) { return view.candidates.at(-1) } }')
    const { pick } = rig(await loadStrategy(path), [1, 2, 3])
    expect(await pick()).toBe('h:3')
    writeFileSync(join(folder, 'none.mjs'), 'export default 7')
    for (const bad of [join(folder, 'none.mjs'), join(folder, 'missing.mjs'), 'no_such_strategy'])
      await expect(loadStrategy(bad)).rejects.toMatchObject({
        code: 'CLIENT_STRATEGY',
        message: expect.stringContaining('InvalidLoadBalanceStrategy'),
      })
    const wrong = rig({ pick: () => 17 }, [1])
    await expect(wrong.pick()).rejects.toMatchObject({ code: 'CLIENT_STRATEGY' })
  })

  it('J45: hosts come and go', async () => {
    const { pick, book } = rig(builtInStrategy('round_robin'), [1, 2])
    book.add({ host: 'h', port: 3 })
    expect(Object.keys(await shares(pick, 30)).sort()).toEqual(['h:1', 'h:2', 'h:3'])
    book.remove('h:1')
    expect(Object.keys(await shares(pick, 30)).sort()).toEqual(['h:2', 'h:3'])
    expect(() => book.remove('h:1')).toThrow(/there is none/)
    book.remove('h:2')
    expect(() => book.remove('h:3')).toThrow(/the last one/)
  })
})

describe('what is known of hosts', () => {
  it('J9: response times are a running mean, of which the newest is three tenths', () => {
    const { book } = rig(builtInStrategy('random'), [1])
    for (const ms of [10, 20]) book.answered(0, ms)
    expect(book.statistics()[0]!.responseMs).toBeCloseTo(13, 9)
    for (const ms of [4, 8]) book.opened(0, ms)
    expect(book.statistics()[0]).toMatchObject({ connectMs: 6, open: 2 })
  })

  it('J45: a host that was removed and is added again begins unblocked', () => {
    const { book } = rig(builtInStrategy('random'), [1, 2])
    book.failed(0, 5000)
    book.remove('h:1')
    book.add({ host: 'h', port: 1 })
    expect(book.statistics()[0]).toMatchObject({ isRemoved: false, weight: 1, blockedMs: 0 })
  })

  it('between two rounds over hosts that are all down there is a pause', async () => {
    const { pick, down, asked, clock } = rig(builtInStrategy('round_robin'), [1, 2], 2)
    down.add('h:1').add('h:2')
    const failed = expect(pick()).rejects.toMatchObject({ code: 'CLIENT_ALL_DOWN' })
    await waitFor(() => clock.pendingTimers > 0)
    await clock.advance(249)
    expect(asked).toHaveLength(2)
    await clock.advance(1)
    await failed
    expect(asked).toHaveLength(4)
  })
})

describe('which errors leave a host', () => {
  class TooBusy extends Error {}
  class VeryBusy extends TooBusy {}
  const sql = (code: string) => Object.assign(new Error('says the server'), { code })

  it.each([
    ['SQLSTATE 08', sql('08006'), true],
    ['a broken socket', lost, true],
    ['what pg says of one', new Error('Connection terminated unexpectedly'), true],
    ['a syntax error', sql('42601'), false],
    ['a duplicate', sql('23505'), false],
    ['a mistake of the program', new TypeError('undefined is no function'), false],
    ['no error at all', 'text', false],
    ['an administrator, when nothing more is said', sql('57P01'), false],
  ])('J22, J23, J25, J27: %s: %s', (_, error, wanted) => {
    expect(standardChecker()(error)).toBe(wanted)
  })

  it('J24: further beginnings of SQLSTATEs', () => {
    const checker = standardChecker({ sqlStateFailover: ['57P'] })
    expect([sql('57P01'), sql('57014')].map(checker)).toEqual([true, false])
  })

  it('J26: classes, by name or itself, and what derives from them', () => {
    for (const named of [TooBusy, 'TooBusy']) {
      const checker = standardChecker({ exceptionClassFailover: [named] })
      expect([new VeryBusy(), new TooBusy(), new Error('x')].map(checker)).toEqual([
        true,
        true,
        false,
      ])
    }
  })

  it('a checker of the user says yes with true alone', async () => {
    const checker = await loadChecker((() => 'yes') as never, {})
    expect(checker(sql('08006'))).toBe(false)
  })

  it('tells a refusal from an unreachable host', () => {
    expect(isCommunicationError(sql('08004'))).toBe(false)
    expect(isCommunicationError(sql('08001'))).toBe(true)
    expect(isCommunicationError(sql('28P01'))).toBe(false)
  })
})
