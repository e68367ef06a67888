/**
 * Two watchers over real nodes whose network is cut, that are killed, that fail together, that flap: who is switched to,
 * and by whom. A heartbeat may be late by half a minute on a busy machine before it counts as none; one that has ended is
 * made old by the test, so that what follows hangs on no speed.
 */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { startCluster } from '../../../src/cluster/cluster.js'
import type { HaPlan } from '../../../src/ha/ha-plan.js'
import { readGroups } from '../../../src/ha/ha-store.js'
import { initGroups } from '../../../src/ha/init-groups.js'
import { type Link, openLinks } from '../../../src/ha/links.js'
import { watchGroups } from '../../../src/ha/watcher.js'
import { type Spoiler, startSpoiler } from '../../support/spoiler.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const INTERVAL_MS = 300
const BOUND_MS = 30_000

const postgres = usePostgres({ version: 15, count: 3, own: true })

describe('two watchers and nodes that fail', () => {
  const wires: Spoiler[] = []
  const lines: string[] = []
  const stop = new AbortController()
  let watching: Promise<unknown>
  let plan: HaPlan
  let state: Link

  beforeAll(async () => {
    for (const server of postgres().servers.slice(0, 2)) wires.push(await startSpoiler(server))
    const node = (i: number) =>
      `host=127.0.0.1 port=${wires[i]!.port} dbname=${postgres().database} user=postgres`
    plan = {
      state: postgres().url(2),
      cluster: 'c',
      user: 'hauser',
      password: 'beat',
      connectTimeoutMs: 1000,
      statementTimeout: 60,
      groups: [
        {
          id: 1,
          name: 'one',
          primary: node(0),
          standby: node(1),
          heartbeatIntervalMs: INTERVAL_MS,
          switchAfterMs: BOUND_MS,
          fencingCommand: undefined,
          promote: false,
        },
      ],
    }
    await initGroups({ plan, routes: [], dryRun: false, drop: false })
    const open = openLinks(plan, systemClock)
    state = await open(undefined)
    const watch = (name: string) =>
      watchGroups({
        plan,
        open,
        clock: systemClock,
        line: (text) => void lines.push(`${name}: ${text}`),
        signal: stop.signal,
      })
    watching = Promise.all([watch('a'), watch('b')])
    watching.catch(() => undefined)
  })
  afterAll(async () => {
    stop.abort()
    await watching
    await state.close()
    for (const wire of wires) await wire.close()
  })

  const group = async () => (await readGroups(state))[0]!
  const current = async () => (await group()).current
  /** Heartbeats of these that were written after this call. */
  const beats = async (...roles: ('primary' | 'standby')[]) => {
    const fromMs = performance.now()
    await waitFor(
      async () => {
        const sinceMs = performance.now() - fromMs
        const now = await group()
        return roles.every((role) => (now[`${role}AgeMs`] ?? Number.POSITIVE_INFINITY) < sinceMs)
      },
      { what: `a heartbeat of ${roles.join(' and ')}`, deadlineMs: 50_000 },
    )
  }
  const healthy = () => beats('primary', 'standby')
  const switches = () => lines.filter((line) => line.includes(': route is on the '))

  async function cut(i: number): Promise<void> {
    await wires[i]!.refuse(true)
    wires[i]!.strike('hang')
  }

  async function mend(i: number): Promise<void> {
    wires[i]!.strike('reset')
    await wires[i]!.refuse(false)
  }

  /** No heartbeat of these nodes is on its way any more: both watchers have failed at each since line `from`. */
  const silent = (from: number, ...hosts: number[]) =>
    waitFor(
      () =>
        hosts.every((host) =>
          ['a', 'b'].every((name) =>
            lines
              .slice(from)
              .some((line) => line.startsWith(`${name}: `) && failure(host).test(line)),
          ),
        ),
      { what: `no heartbeat of ${hosts.join(' and ')}`, deadlineMs: 50_000 },
    )
  const failure = (host: number) =>
    new RegExp(`probe of host ${host} failed|CONNECT ERROR: host ${host} `)

  /** The last heartbeats of nodes that are silent were an hour ago. */
  const age = (...roles: ('primary' | 'standby')[]) =>
    postgres().query(
      `update ha_config set ${roles.map((role) => `${role}_hearttime = (now() at time zone 'UTC') - interval '1 hour'`).join(', ')}`,
      [],
      2,
    )

  /** Both nodes are well and the route is there, whatever happened before. */
  async function start(role: 'primary' | 'standby'): Promise<void> {
    for (const i of [0, 1]) await mend(i)
    await healthy()
    await postgres().query(`update ha_config set current_hostid = ${role}_hostid`, [], 2)
  }
  beforeEach(() => start('primary'))

  const until = (role: 'primary' | 'standby') =>
    waitFor(async () => (await current()) === role, {
      what: `the route on the ${role}`,
      deadlineMs: 30_000,
    })

  test('X36, X40: a primary whose network is cut is left once, and not gone back to when it is mended', async () => {
    const [before, from] = [switches().length, lines.length]
    await cut(0)
    await silent(from, 0)
    expect(await current()).toBe('primary')
    await age('primary')
    await until('standby')
    await mend(0)
    await healthy()
    expect(await current()).toBe('standby')
    await waitFor(() => switches().length === before + 1)
  })

  test('X38: a standby that is killed while the primary is well gives the route back', async () => {
    await start('standby')
    const [before, from] = [switches().length, lines.length]
    const { directory, servers } = postgres()
    process.kill(servers[1]!.pid, 'SIGKILL')
    try {
      await silent(from, 1)
      await age('standby')
      await until('primary')
      await waitFor(() => switches().length === before + 1)
    } finally {
      await startCluster({ directory, shards: 3, replicas: 0, postgresVersion: 15 })
    }
    await healthy()
    expect(await current()).toBe('primary')
  })

  test('X37: both cut off: the route stays, and each round says so', async () => {
    const [before, from] = [switches().length, lines.length]
    await cut(0)
    await cut(1)
    // of none a heartbeat comes any more, and both are old in the same moment
    await silent(from, 0, 1)
    await age('primary', 'standby')
    const told = () => lines.slice(from).filter((line) => line.includes('both failed')).length
    await waitFor(() => told() > 6, { what: 'both failed', deadlineMs: 30_000 })
    expect(await current()).toBe('primary')
    // The primary first: a standby that beats before it would rightly be switched to.
    await mend(0)
    await beats('primary')
    await mend(1)
    await healthy()
    expect([await current(), switches().length]).toEqual(['primary', before])
  })

  test('a primary that flaps faster than the bound is kept', async () => {
    const before = switches().length
    for (let i = 0; i < 5; i++) {
      wires[0]!.strike('reset')
      await healthy()
    }
    expect([await current(), switches().length]).toEqual(['primary', before])
  })
})
