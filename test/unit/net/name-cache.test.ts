import { describe, expect, it } from 'vitest'
import { NameCache } from '../../../src/net/name-cache.js'
import { FakeClock, settled } from '../../support/fake-clock.js'

function make(ttlMs = 1000) {
  const clock = new FakeClock()
  const asked: string[] = []
  const answers = new Map([['db', ['10.0.0.1']]])
  const names = new NameCache({
    clock,
    ttlMs: () => ttlMs,
    resolve: async (host) => {
      asked.push(host)
      const found = answers.get(host)
      if (!found) throw new Error('ENOTFOUND')
      return found
    },
  })
  const changed: string[] = []
  names.onChange = (host) => changed.push(host)
  return { clock, asked, answers, names, changed }
}

describe('D174: names of hosts', () => {
  it('are looked up once for each TTL, however many ask', async () => {
    const { clock, asked, names } = make()
    for (let i = 0; i < 40; i++) {
      expect(await names.lookup('db')).toEqual(['10.0.0.1'])
      await clock.advance(100)
    }
    // at the start, and at 1, 2, 3 and 4 seconds
    expect(asked).toHaveLength(5)
  })

  it('a changed answer is used after the TTL, and told', async () => {
    const { clock, answers, names, changed } = make()
    await names.lookup('db')
    await names.lookup('db')
    answers.set('db', ['10.0.0.2'])
    await clock.advance(999)
    expect(await names.lookup('db')).toEqual(['10.0.0.1'])
    await clock.advance(1)
    expect(await names.lookup('db')).toEqual(['10.0.0.2'])
    expect(changed).toEqual(['db'])
  })

  it('the same addresses in another order are no change', async () => {
    const { clock, answers, names, changed } = make()
    answers.set('db', ['10.0.0.1', '10.0.0.2'])
    await names.lookup('db')
    await names.lookup('db')
    answers.set('db', ['10.0.0.2', '10.0.0.1'])
    await clock.advance(1000)
    expect(changed).toEqual([])
  })

  it('a name service that is away takes no address from us', async () => {
    const { clock, answers, names, asked } = make()
    await names.lookup('db')
    await names.lookup('db')
    answers.delete('db')
    await clock.advance(3000)
    expect(await names.lookup('db')).toEqual(['10.0.0.1'])
    expect(asked.length).toBeGreaterThan(2)
    await expect(names.lookup('other')).rejects.toThrow('ENOTFOUND')
    answers.set('other', ['10.0.0.3'])
    expect(await names.lookup('other')).toEqual(['10.0.0.3'])
  })

  it('nobody is asked for a name that is not used any more', async () => {
    const { clock, asked, names } = make()
    await names.lookup('db')
    await clock.advance(10_000)
    await settled()
    expect(asked).toHaveLength(1)
    expect(clock.pendingTimers).toBe(0)
    await names.lookup('db')
    expect(asked).toHaveLength(2)
  })
})
