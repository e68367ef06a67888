/** Two watchers over real nodes whose network is cut, that are killed, that fail together, that flap: who is switched to, and by whom. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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
const BOUND_MS = 3000

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
      connectTimeoutMs: 500,
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
    await healthy()
  })
  afterAll(async () => {
    stop.abort()
    await watching
    await state.close()
    for (const wire of wires) await wire.close()
  })

  const group = async () => (await readGroups(state))[0]!
  const current = async () => (await group()).current
  const healthy = () =>
    waitFor(
      async () => {
        const { primaryAgeMs, standbyAgeMs } = await group()
        return (primaryAgeMs ?? 1e9) < BOUND_MS && (standbyAgeMs ?? 1e9) < BOUND_MS
      },
      { what: 'heartbeats of both', deadlineMs: 30_000 },
    )
  const switches = () => lines.filter((line) => line.includes(': route is on the '))

  async function cut(i: number): Promise<void> {
    await wires[i]!.refuse(true)
    wires[i]!.strike('hang')
  }

  async function mend(i: number): Promise<void> {
    wires[i]!.strike('reset')
    await wires[i]!.refuse(false)
  }

  const until = (role: 'primary' | 'standby') =>
    waitFor(async () => (await current()) === role, {
      what: `the route on the ${role}`,
      deadlineMs: 30_000,
    })

  test('X36, X40: a primary whose network is cut is left once, and not gone back to when it is mended', async () => {
    const before = switches().length
    await cut(0)
    await until('standby')
    await mend(0)
    await healthy()
    expect(await current()).toBe('standby')
    await waitFor(() => switches().length === before + 1)
  })

  test('X38: a standby that is killed while the primary is well gives the route back', async () => {
    const before = switches().length
    const { directory, servers } = postgres()
    process.kill(servers[1]!.pid, 'SIGKILL')
    try {
      await until('primary')
      await waitFor(() => switches().length === before + 1)
    } finally {
      await startCluster({ directory, shards: 3, replicas: 0, postgresVersion: 15 })
    }
    await healthy()
    expect(await current()).toBe('primary')
  })

  test('X37: both cut off: the route stays, and each round says so', async () => {
    const before = switches().length
    // The standby's last heartbeat is older than the primary's, so no moment comes in which only the primary is stale.
    await cut(1)
    await waitFor(async () => {
      const { primaryAgeMs, standbyAgeMs } = await group()
      return (primaryAgeMs ?? 1e9) < (standbyAgeMs ?? 0)
    })
    await cut(0)
    try {
      await waitFor(() => lines.filter((line) => line.includes('both failed')).length > 6, {
        deadlineMs: 30_000,
      })
      expect(await current()).toBe('primary')
    } finally {
      // The primary first: a standby that beats before it would rightly be switched to.
      await mend(0)
      await waitFor(async () => ((await group()).primaryAgeMs ?? 1e9) < BOUND_MS, {
        what: 'a heartbeat of the primary',
        deadlineMs: 30_000,
      })
      await mend(1)
    }
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
