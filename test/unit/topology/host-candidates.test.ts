import { describe, expect, test } from 'vitest'
import { type Clock, systemClock } from '../../../src/base/clock.js'
import { parseConninfo } from '../../../src/topology/conninfo.js'
import {
  type Candidate,
  connectCandidates,
  type SessionState,
} from '../../../src/topology/host-candidates.js'
import { Prng, type Uint64Source } from '../../../src/topology/prng.js'
import { bareEnvironment as environment } from '../../support/conninfo-environment.js'

const refused = () => Object.assign(new Error('refused'), { code: 'ECONNREFUSED' })
const fatal = (code: string) => Object.assign(new Error(`no ${code}`), { code, severity: 'FATAL' })

interface World {
  addresses?: Record<string, string[]>
  open: (candidate: Candidate, signal: AbortSignal) => Promise<string>
  random?: Uint64Source
  state?: (connection: string) => SessionState
  clock?: Clock
}

async function walk(text: string, world: World) {
  const log = { resolved: [] as string[], tried: [] as string[], closed: [] as string[], seeds: 0 }
  const result = connectCandidates<string>(
    parseConninfo(text, environment),
    (candidate, signal) => {
      log.tried.push(`${candidate.address}:${candidate.port}`)
      return world.open(candidate, signal)
    },
    {
      resolve: async (name) => {
        log.resolved.push(name)
        const found = world.addresses?.[name]
        if (found === undefined) throw Object.assign(new Error('x'), { code: 'ENOTFOUND' })
        return found
      },
      makeRandom: () => {
        log.seeds++
        return world.random ?? Prng.ofSeed(1n)
      },
      clock: world.clock ?? systemClock,
      sessionState: async (connection) =>
        world.state?.(connection) ?? { inHotStandby: false, defaultReadOnly: false },
      close: (connection) => void log.closed.push(connection),
    },
  )
  const outcome = await result.then(
    (found) => ({ connection: found.connection, error: undefined }),
    (error: Error) => ({ connection: undefined, error: error.message }),
  )
  return { ...log, ...outcome }
}

const onlyPort = (port: number) => async (candidate: Candidate) => {
  if (candidate.port !== port) throw refused()
  return `${candidate.host.host}:${candidate.port}`
}

describe('order', () => {
  test('L6, L7, L12, L15: disable keeps the order, draws nothing, and resolves no host too many', async () => {
    const found = await walk('host=a,b,c port=1,2,3', {
      addresses: { a: ['10.0.0.1', '::1'], b: ['10.0.0.2'], c: ['10.0.0.3'] },
      open: onlyPort(2),
    })
    expect(found.tried).toEqual(['10.0.0.1:1', '::1:1', '10.0.0.2:2'])
    expect(found.resolved).toEqual(['a', 'b'])
    expect(found.seeds).toBe(0)
    expect(found.connection).toBe('b:2')
  })

  test('L16, L26: random seeds once a connection and reaches the last live host always', async () => {
    const first = new Map<string, number>()
    const random = Prng.ofSeed(3n)
    for (let i = 0; i < 600; i++) {
      const found = await walk('host=a,b,c port=1,2,3 load_balance_hosts=random', {
        addresses: { a: ['10.0.0.1'], b: ['10.0.0.2'], c: ['10.0.0.3'] },
        open: onlyPort(2),
        random,
      })
      expect(found.connection).toBe('b:2')
      expect(found.seeds).toBe(1)
      const head = found.tried[0] as string
      first.set(head, (first.get(head) ?? 0) + 1)
    }
    for (const count of first.values()) expect(Math.abs(count - 200)).toBeLessThan(60)
  })

  test('L34: hosts with 1, 2 and 3 addresses, only the first alive: six tries at most', async () => {
    const random = Prng.ofSeed(9n)
    let most = 0
    for (let i = 0; i < 300; i++) {
      const found = await walk('host=a,b,c port=1,2,3 load_balance_hosts=random', {
        addresses: { a: ['10.0.0.1'], b: ['1.1.1.1', '1.1.1.2'], c: ['2.2.2.1', '2.2.2.2', '::1'] },
        open: onlyPort(1),
        random,
      })
      most = Math.max(most, found.tried.length)
      expect(found.connection).toBe('a:1')
    }
    expect(most).toBe(6)
  })
})

describe('which failures go on', () => {
  const cases: [string, Error, boolean][] = [
    ['refused', refused(), true],
    ['57P03', fatal('57P03'), true],
    ['53300', fatal('53300'), false],
    ['28P01', fatal('28P01'), false],
    ['3D000', fatal('3D000'), false],
    ['closed', new Error('server closed the connection unexpectedly'), false],
  ]
  test.each(cases)('%s', async (_, error, goesOn) => {
    const found = await walk('host=1.1.1.1,2.2.2.2', {
      open: async (candidate) => {
        if (candidate.hostIndex === 0) throw error
        return 'second'
      },
    })
    expect(found.tried.length).toBe(goesOn ? 2 : 1)
    expect(found.connection).toBe(goesOn ? 'second' : undefined)
  })

  test('57P03 leaves the other addresses of that host alone', async () => {
    const found = await walk('host=a,b', {
      addresses: { a: ['1.1.1.1', '1.1.1.2'], b: ['2.2.2.2'] },
      open: async (candidate) => {
        if (candidate.hostIndex === 0) throw fatal('57P03')
        return 'b'
      },
    })
    expect(found.tried).toEqual(['1.1.1.1:5432', '2.2.2.2:5432'])
  })

  test('an unknown host is skipped', async () => {
    const found = await walk('host=nosuch,2.2.2.2', { open: async () => 'ok' })
    expect(found.connection).toBe('ok')
  })

  test('a host that says nothing is left after its own time limit', async () => {
    let isAborted = false
    const clock = { ...systemClock, sleep: async () => undefined }
    const found = await walk('host=1.1.1.1,2.2.2.2 connect_timeout=1', {
      clock,
      open: (candidate, signal) => {
        if (candidate.hostIndex === 1) return Promise.resolve('second')
        signal.addEventListener('abort', () => {
          isAborted = true
        })
        return new Promise(() => undefined)
      },
    }).catch(() => undefined)
    expect(isAborted).toBe(true)
    expect(found?.tried.length).toBe(2)
  })
})

describe('target_session_attrs', () => {
  const standby = { inHotStandby: true, defaultReadOnly: false }
  const primary = { inHotStandby: false, defaultReadOnly: false }
  const state = (connection: string) => (connection === 'standby' ? standby : primary)
  const open = async (candidate: Candidate) => candidate.host.host
  const names = { standby: ['1.1.1.1'], primary: ['2.2.2.2'] }
  const reach = async (hosts: string, attrs: string) =>
    await walk(`host=${hosts} target_session_attrs=${attrs}`, { addresses: names, open, state })

  test.each([
    ['standby,primary', 'primary', 'primary'],
    ['standby,primary', 'read-write', 'primary'],
    ['primary,standby', 'standby', 'standby'],
    ['primary,standby', 'read-only', 'standby'],
    ['primary,standby', 'prefer-standby', 'standby'],
    ['primary,primary', 'prefer-standby', 'primary'],
    ['primary,standby', 'any', 'primary'],
  ])('%s with %s reaches %s', async (hosts, attrs, wanted) => {
    const found = await reach(hosts, attrs)
    expect(found.connection).toBe(wanted)
    expect(found.closed.length).toBe(found.tried.length - 1)
  })

  test('none fits: the error says so', async () => {
    expect((await reach('primary', 'standby')).error).toBe(
      'connection to server at "primary" (2.2.2.2), port 5432 failed: server is not in hot standby mode',
    )
  })
})

test('L31, L32: the error holds a block per attempt in libpq form', async () => {
  const found = await walk('host=127.0.0.1,localhost,/tmp port=1,2,3', {
    addresses: { localhost: ['127.0.0.1'] },
    open: async (candidate) => {
      if (!candidate.address.startsWith('/')) throw refused()
      throw Object.assign(new Error('no'), { code: 'ENOENT' })
    },
  })
  expect(found.error).toBe(
    [
      'connection to server at "127.0.0.1", port 1 failed: Connection refused',
      '\tIs the server running on that host and accepting TCP/IP connections?',
      'connection to server at "localhost" (127.0.0.1), port 2 failed: Connection refused',
      '\tIs the server running on that host and accepting TCP/IP connections?',
      'connection to server on socket "/tmp/.s.PGSQL.3" failed: No such file or directory',
      '\tIs the server running locally and accepting connections on that socket?',
    ].join('\n'),
  )
})
