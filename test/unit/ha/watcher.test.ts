/** Probers and checker on a clock that a test moves, over nodes and a state database that are plain objects. */
import { describe, expect, test } from 'vitest'
import { randomOf } from '../../support/random-of.js'
import { group, World } from './world.js'

describe('probers', () => {
  test('X18, X19, X22: one a node of all groups, every ten seconds, and the time of each is written', async () => {
    const world = new World([group(1), group(2)])
    const done = world.watch()
    await world.seconds(45)
    const hosts = new Set(world.probes.map(({ host }) => host))
    expect([...hosts].sort()).toEqual(['p1', 'p2', 's1', 's2'])
    const times = world.probes.filter(({ host }) => host === 'p1').map(({ atMs }) => atMs)
    expect(times.slice(1).map((at, i) => at - times[i]!)).toEqual([10_000, 10_000, 10_000, 10_000])
    for (const row of world.rows)
      for (const role of ['primary', 'standby'] as const)
        expect(world.clock.nowMs() - row[role], role).toBeLessThanOrEqual(10_000)
    world.stop.abort()
    await world.seconds(1)
    await done
  })

  test('X23, X32: the state is asked on a connection of its own each time; in the end all are closed', async () => {
    const world = new World()
    const done = world.watch()
    await world.seconds(35)
    // one of the checker and one a node
    expect(world.open).toBe(3)
    expect(world.stateOpened).toBe(1 + 2 * 4)
    world.stop.abort()
    await world.seconds(1)
    await done
    expect(world.open).toBe(0)
  })

  test('X17: a node that takes no write gives no heartbeat', async () => {
    const world = new World()
    world.readOnly.add('p1')
    const done = world.watch()
    await world.seconds(60)
    expect(world.rows[0]!.current).toBe('standby')
    expect(world.lines.join('\n')).toContain('probe of host 0 failed')
    world.stop.abort()
    await world.seconds(1)
    await done
  })

  test('X21, X26, X27, X29, X30: a node that is down is tried every ten seconds, two failures are logged, its return is', async () => {
    const world = new World()
    const done = world.watch()
    await world.seconds(15)
    world.down.add('s1')
    await world.seconds(60)
    const errors = () => world.lines.filter((line) => line.includes('CONNECT ERROR: host 1'))
    expect(errors()).toHaveLength(2)
    const gapMs = world.clock.nowMs() - world.rows[0]!.standby
    expect(gapMs).toBeGreaterThan(55_000)
    world.down.delete('s1')
    await world.seconds(25)
    const returns = () =>
      world.lines.filter((line) => /NOTICE: host 1 .*reconnect successful/.test(line)).length
    expect(returns()).toBe(1)
    expect(world.clock.nowMs() - world.rows[0]!.standby).toBeLessThanOrEqual(10_000)
    expect(errors()[0]).toContain('password=***')
    expect(world.lines.join('\n')).not.toContain('secret')
    // one failure is enough to be told of
    world.down.add('s1')
    while (errors().length === 2) await world.seconds(1)
    world.down.delete('s1')
    await world.seconds(25)
    expect([errors().length, returns()]).toEqual([3, 2])
    world.stop.abort()
    await world.seconds(1)
    await done
  })

  test('X28, X44, X45: while the state database is down every failure is logged, and all goes on behind it', async () => {
    const world = new World()
    const done = world.watch()
    await world.seconds(25)
    world.stateDown = true
    await world.seconds(60)
    const failures = world.lines.filter((line) => line.includes('CONNECT ERROR: state database'))
    expect(failures.length).toBeGreaterThan(8)
    expect(world.lines.join('\n')).toContain('check failed')
    world.stateDown = false
    await world.seconds(60)
    // both heartbeats were as old as the outage: nobody is switched for that
    expect(world.rows[0]!.current).toBe('primary')
    expect(world.clock.nowMs() - world.rows[0]!.primary).toBeLessThanOrEqual(10_000)
    expect(world.lines.join('\n')).toContain('state database: reconnect successful')
    world.stop.abort()
    await world.seconds(1)
    await done
  })
})

describe('the checker', () => {
  test('X31: its lines have time, name and text', async () => {
    const world = new World()
    const done = world.watch()
    await world.seconds(1)
    expect(world.lines[0]).toMatch(
      /^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d : plpcluster : NOTICE: watching/,
    )
    world.stop.abort()
    await world.seconds(1)
    await done
  })

  test('X36, X40: fails over once, and not back when the primary returns', async () => {
    const world = new World()
    const done = world.watch()
    await world.seconds(30)
    world.down.add('p1')
    await world.seconds(40)
    expect(world.rows[0]!.current).toBe('standby')
    world.down.delete('p1')
    await world.seconds(120)
    expect(world.rows[0]!.current).toBe('standby')
    world.down.add('s1')
    await world.seconds(40)
    expect(world.rows[0]!.current).toBe('primary')
    world.stop.abort()
    await world.seconds(1)
    await done
  })

  test('X37: both down: nothing is switched, and each round says so', async () => {
    const world = new World()
    const done = world.watch()
    await world.seconds(30)
    world.down.add('p1').add('s1')
    await world.seconds(80)
    expect(world.rows[0]!.current).toBe('primary')
    expect(world.lines.filter((line) => line.includes('both failed')).length).toBeGreaterThan(3)
    world.stop.abort()
    await world.seconds(1)
    await done
  })

  test('X42: two groups that fail together are both switched', async () => {
    const world = new World([group(1), group(2)])
    const done = world.watch()
    await world.seconds(30)
    world.down.add('p1').add('p2')
    await world.seconds(40)
    expect(world.rows.map(({ current }) => current)).toEqual(['standby', 'standby'])
    world.stop.abort()
    await world.seconds(1)
    await done
  })

  test('X35: begins two seconds behind the probers, and decides nothing on heartbeats from before its start', async () => {
    const world = new World()
    world.rows[0]!.primary -= 3_600_000
    world.down.add('p1')
    const done = world.watch()
    await world.seconds(19)
    expect(world.rows[0]!.current).toBe('primary')
    await world.seconds(15)
    expect(world.rows[0]!.current).toBe('standby')
    world.stop.abort()
    await world.seconds(1)
    await done
  })

  test('a process that stood still does not switch on what it missed', async () => {
    const world = new World()
    const done = world.watch()
    await world.seconds(31)
    world.clock.jump(300_000)
    await world.seconds(60)
    expect(world.rows[0]!.current).toBe('primary')
    expect(world.switchedAtMs).toBeUndefined()
    world.stop.abort()
    await world.seconds(1)
    await done
  })

  test('X46: it takes more than 10 and at most about 30 seconds, whenever the node fails', async () => {
    const random = randomOf(20261130)
    for (let round = 0; round < 40; round++) {
      const world = new World()
      const done = world.watch()
      await world.advance(30_000 + random(20_000))
      const failedAtMs = world.clock.nowMs()
      world.down.add('p1')
      await world.seconds(60)
      const tookMs = (world.switchedAtMs ?? Number.POSITIVE_INFINITY) - failedAtMs
      expect(tookMs).toBeGreaterThan(10_000)
      expect(tookMs).toBeLessThanOrEqual(31_000)
      world.stop.abort()
      await world.seconds(1)
      await done
    }
  })
})

describe('a start that fails', () => {
  test('X33: an unreachable state database is logged, a second later it ends', async () => {
    const world = new World()
    world.stateDown = true
    const done = world.watch()
    let ended = false
    done.catch(() => {
      ended = true
    })
    await world.advance(900)
    expect(ended).toBe(false)
    expect(world.lines[0]).toContain('CONNECT ERROR: state database')
    await world.advance(700)
    expect(ended).toBe(true)
  })

  test('X34: so is a table without the groups', async () => {
    const world = new World([group(1)])
    world.rows.length = 0
    const done = world.watch()
    const failed = expect(done).rejects.toMatchObject({ code: 'HA_NO_STATE' })
    await world.seconds(2)
    await failed
    expect(world.lines[0]).toMatch(/ERROR: 42P01 : select from ha_config : /)
    expect(world.open).toBe(0)
  })
})
