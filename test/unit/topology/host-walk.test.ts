/** libpq's walk step by step: what is shuffled when, how often, and what each attempt leaves behind. */
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { systemRandom } from '../../../src/pg/connect.js'
import { parseConninfo } from '../../../src/topology/conninfo.js'
import { type Candidate, connectCandidates } from '../../../src/topology/host-candidates.js'
import { Prng, type Uint64Source } from '../../../src/topology/prng.js'
import { bareEnvironment as environment } from '../../support/conninfo-environment.js'

const refused = () => Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })

interface World {
  readonly addresses: Record<string, string[]>
  readonly isLive: (candidate: Candidate) => boolean
  readonly random?: Uint64Source
  readonly resolveLate?: Promise<void>
}

/** Everything that happens in one walk, in order. */
async function trace(text: string, world: World) {
  const events: string[] = []
  const blocks: string[] = []
  const source = world.random ?? Prng.ofSeed(7n)
  const random: Uint64Source = {
    nextUint64: () => {
      events.push('draw')
      return source.nextUint64()
    },
  }
  const outcome = await connectCandidates<string>(
    parseConninfo(text, environment),
    async (candidate) => {
      events.push(`try ${candidate.address}:${candidate.port}`)
      if (!world.isLive(candidate)) throw refused()
      return `${candidate.address}:${candidate.port}`
    },
    {
      resolve: async (name) => {
        events.push(`resolve ${name}`)
        await world.resolveLate
        return world.addresses[name] ?? []
      },
      makeRandom: () => {
        events.push('seed')
        return random
      },
      clock: systemClock,
      sessionState: async () => ({ inHotStandby: false, defaultReadOnly: false }),
      close: () => undefined,
      onFailure: (_, block) => void blocks.push(block),
    },
  ).then(
    ({ connection }) => connection,
    (error: Error) => error.message,
  )
  return { events, blocks, outcome }
}

const three = { a: ['10.0.0.1'], b: ['10.0.0.2'], c: ['10.0.0.3'] }

describe('the order of events', () => {
  test('L10, L33: all hosts are shuffled once, before any is resolved', async () => {
    const { events } = await trace('host=a,b,c load_balance_hosts=random', {
      addresses: three,
      isLive: () => false,
    })
    const firstResolve = events.findIndex((event) => event.startsWith('resolve'))
    expect(events[0]).toBe('seed')
    // two draws or more (a biased one is thrown away) put three hosts in order; one address a host needs none
    const before = events.slice(1, firstResolve)
    expect(before.length).toBeGreaterThanOrEqual(2)
    expect(new Set(before)).toEqual(new Set(['draw']))
    expect(events.slice(firstResolve)).not.toContain('draw')
    expect(events.filter((event) => event === 'seed')).toHaveLength(1)
  })

  test('L11, L33: the addresses of a host are shuffled behind its resolving, once a host visited', async () => {
    const { events } = await trace('host=a,b port=1,2 load_balance_hosts=random', {
      addresses: {
        a: ['10.0.0.1', '10.0.0.2', '10.0.0.3'],
        b: ['10.1.0.1', '10.1.0.2', '10.1.0.3'],
      },
      isLive: () => false,
    })
    const shape = events.map((event) => event.split(' ')[0]).join(' ')
    expect(shape).toBe('seed draw resolve draw draw try try try resolve draw draw try try try')
  })

  test('L11: each of three addresses comes first about as often', async () => {
    const first = new Map<string, number>()
    for (let seed = 1n; seed <= 3000n; seed++) {
      const { outcome } = await trace('host=a load_balance_hosts=random', {
        addresses: { a: ['x', 'y', 'z'] },
        isLive: () => true,
        random: Prng.ofSeed(seed),
      })
      first.set(outcome, (first.get(outcome) ?? 0) + 1)
    }
    expect(first.size).toBe(3)
    for (const count of first.values()) expect(Math.abs(count - 1000)).toBeLessThan(120)
  })

  test('L22, L23, L24: next address of a host first, then the next host, from the first on', async () => {
    const { events, outcome } = await trace('host=a,b port=1,2', {
      addresses: { a: ['10.0.0.1', '10.0.0.2'], b: ['10.1.0.1'] },
      isLive: ({ port }) => port === 2,
    })
    expect(events).toEqual([
      'resolve a',
      'try 10.0.0.1:1',
      'try 10.0.0.2:1',
      'resolve b',
      'try 10.1.0.1:2',
    ])
    expect(outcome).toBe('10.1.0.1:2')
  })

  test('L30: a block stays for each attempt that failed, also when a later one is taken', async () => {
    const { blocks, outcome } = await trace('host=a,b,c port=1,2,3', {
      addresses: three,
      isLive: ({ port }) => port === 3,
    })
    expect(outcome).toBe('10.0.0.3:3')
    expect(blocks).toHaveLength(2)
    expect(blocks[0]).toContain('"a" (10.0.0.1), port 1 failed')
  })
})

describe('both IP families', () => {
  const addresses = { localhost: ['::1', '127.0.0.1'] }
  const isLive = ({ address, port }: Candidate) => address === '127.0.0.1' && port === 5432

  test('L35, L62, L63: a name of both families is two candidates; one live of six is met within six tries', async () => {
    const lengths = new Set<number>()
    for (let seed = 1n; seed <= 200n; seed++) {
      const { events, outcome } = await trace(
        'host=localhost,localhost,localhost port=5432,5433,5434 load_balance_hosts=random',
        { addresses, isLive, random: Prng.ofSeed(seed) },
      )
      const tries = events.filter((event) => event.startsWith('try'))
      expect(outcome).toBe('127.0.0.1:5432')
      expect(new Set(tries).size).toBe(tries.length)
      lengths.add(tries.length)
    }
    expect(Math.min(...lengths)).toBe(1)
    expect(Math.max(...lengths)).toBe(6)
  })

  test('L35: the trace shown can be had: 5433 by ::1, 5433 by 127.0.0.1, 5432', async () => {
    const wanted = ['try ::1:5433', 'try 127.0.0.1:5433', 'try 127.0.0.1:5432']
    let isSeen = false
    for (let seed = 1n; seed <= 500n && !isSeen; seed++) {
      const { events } = await trace(
        'host=localhost,localhost,localhost port=5432,5433,5434 load_balance_hosts=random',
        { addresses, isLive, random: Prng.ofSeed(seed) },
      )
      isSeen = events.filter((event) => event.startsWith('try')).join() === wanted.join()
    }
    expect(isSeen).toBe(true)
  })

  test('L62: the block of an attempt names the address of its family', async () => {
    const { blocks } = await trace('host=localhost port=1', { addresses, isLive: () => false })
    expect(blocks.map((block) => /\((\S+)\), port/.exec(block)?.[1])).toEqual(['::1', '127.0.0.1'])
  })
})

test('L39: a host of one address and one of three: 1/2, 1/6, 1/6, 1/6', async () => {
  const first = new Map<string, number>()
  const rounds = 6000
  for (let seed = 1n; seed <= BigInt(rounds); seed++) {
    const { outcome } = await trace('host=a,b load_balance_hosts=random', {
      addresses: { a: ['a1'], b: ['b1', 'b2', 'b3'] },
      isLive: () => true,
      random: Prng.ofSeed(seed),
    })
    first.set(outcome, (first.get(outcome) ?? 0) + 1)
  }
  const share = (address: string) => (first.get(`${address}:5432`) ?? 0) / rounds
  expect(share('a1')).toBeCloseTo(1 / 2, 1)
  for (const address of ['b1', 'b2', 'b3'])
    expect(Math.abs(share(address) - 1 / 6)).toBeLessThan(0.02)
})

test('L64: a name that resolves late keeps nobody else waiting', async () => {
  let letGo!: () => void
  const slow = trace('host=a', {
    addresses: three,
    isLive: () => true,
    resolveLate: new Promise((resolve) => {
      letGo = resolve
    }),
  })
  const quick = await trace('host=b', { addresses: three, isLive: () => true })
  expect(quick.outcome).toBe('10.0.0.2:5432')
  letGo()
  expect((await slow).outcome).toBe('10.0.0.1:5432')
})

describe('L3, L5: load_balance_hosts', () => {
  test.each(['disable', 'random'])('%s is taken', (value) => {
    const read = parseConninfo(`host=a load_balance_hosts=${value}`, environment)
    expect(read.loadBalanceHosts).toBe(value)
  })
  test.each(['roundrobin', 'foo', 'RANDOM', ''])('"%s" is refused by name', (value) => {
    const read = () => parseConninfo(`host=a load_balance_hosts='${value}'`, environment)
    if (value === '') expect(read().loadBalanceHosts).toBe('disable')
    else expect(read).toThrow(`invalid load_balance_hosts value: "${value}"`)
  })
})

test('L65: host and hostaddr are both kept: one for the name, one for the address', () => {
  const { hosts } = parseConninfo('host=db.example hostaddr=10.0.0.1', environment)
  expect(hosts).toMatchObject([{ host: 'db.example', hostaddr: '10.0.0.1' }])
})

describe('L17: the seed', () => {
  test('two connections of one process draw differently', () => {
    expect(systemRandom().nextUint64()).not.toBe(systemRandom().nextUint64())
  })

  test('without strong randomness it is made of process, time and a count', () => {
    const weak = () => {
      throw new Error('no entropy')
    }
    const draws = [1, 2, 3].map(() => systemRandom(weak).nextUint64())
    expect(new Set(draws).size).toBe(3)
  })
})
