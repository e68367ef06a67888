import { describe, expect, it } from 'vitest'
import type { PoolDefinition } from '../../../src/pool/definition.js'
import { settled } from '../../support/fake-clock.js'
import { defineHost } from './define.js'
import { portOf, start } from './fake-hosts.js'

const autos = (count = 2) =>
  Array.from({ length: count }, (_, i) => defineHost({ port: i + 1, role: 'auto' }))

/** The first host is the primary, the others are its replicas; all were asked. */
async function begun(count = 2, rest: Partial<PoolDefinition> = {}) {
  const all = start(autos(count), rest)
  for (let port = 2; port <= count; port++) all.fake.recovering.add(port)
  all.pools.start()
  await all.clock.advance(0)
  const rolesOf = () => [...all.pools.all()].map(({ role }) => role)
  const promote = (port: number) => {
    all.fake.recovering.delete(port)
    all.fake.timeline.set(port, 2)
  }
  return { ...all, rolesOf, promote }
}

describe('D99: the primary dies', () => {
  it('a write that meets the dead host waits for the promotion instead of failing', async () => {
    const { user, fake, clock, promote } = await begun()
    fake.kill(1)
    const written = portOf(user, 'primary')
    await clock.advance(2000)
    promote(2)
    await clock.advance(300)
    expect(await written).toBe(2)
  })

  it('no idle server of it is lent once one of its servers was lost, until it has answered anew', async () => {
    const { user, fake, clock } = await begun()
    const two = [await user.checkout(0, 'primary'), await user.checkout(0, 'primary')]
    for (const one of two) one.release()
    // one is lost; the other looks well still
    fake.down.add(1)
    fake.die(two[0]!.resource)
    const next = user.checkout(0, 'primary')
    expect(next).toBeInstanceOf(Promise)
    fake.down.delete(1)
    await clock.advance(300)
    expect((await next).resource.target.port).toBe(1)
  })

  it('who waits in its queue goes on at the new one', async () => {
    const { user, clock, promote, fake } = await begun()
    const held = await Promise.all([1, 2, 3].map(() => user.checkout(0, 'primary')))
    const waiting = portOf(user, 'primary')
    fake.silent.add(1)
    promote(2)
    await clock.advance(2500)
    expect(await waiting).toBe(2)
    expect(held[0]!.resource.target.port).toBe(1)
  })

  it('a write fails with 57P03 when no primary comes within checkout_timeout', async () => {
    const { user, fake, clock } = await begun()
    fake.kill(1)
    const failing = portOf(user, 'primary').catch((error: unknown) => error)
    await clock.advance(4900)
    let isOver = false
    void failing.then(() => {
      isOver = true
    })
    await settled()
    expect(isOver).toBe(false)
    await clock.advance(200)
    expect(await failing).toMatchObject({ code: 'POOL_NO_PRIMARY', sqlstate: '57P03' })
  })

  it('a supposed primary that turns out to be a replica (25006) is asked at once, and takes no more writes', async () => {
    const { user, fake, clock } = await begun(2, { roleCheckIntervalMs: 60_000 })
    const held = await user.checkout(0, 'primary')
    fake.recovering.add(1)
    user.wasReadOnly(0, held.resource)
    held.release()
    const next = user.checkout(0, 'primary')
    expect(next).toBeInstanceOf(Promise)
    fake.recovering.delete(2)
    fake.timeline.set(2, 2)
    await clock.advance(300)
    expect((await next).resource.target.port).toBe(2)
  })

  it('25006 of a client that asked for a read-only transaction says nothing of the host', async () => {
    const { user } = await begun()
    const held = await user.checkout(0, 'primary')
    user.wasReadOnly(0, held.resource)
    held.release()
    expect(user.checkout(0, 'primary')).not.toBeInstanceOf(Promise)
  })

  it('a login that is refused is no reason to wait', async () => {
    const { user, fake, clock } = await begun()
    fake.refusals.set(1, '28P01')
    const failing = portOf(user, 'primary').catch((error: unknown) => error)
    await clock.advance(0)
    expect(await failing).toMatchObject({ code: 'POOL_CONNECT_FAILED' })
  })
})

describe('D99: two hosts that call themselves primary', () => {
  it('the newer timeline wins, also with less WAL; the other takes neither writes nor reads', async () => {
    const { user, fake, clock, promote, rolesOf } = await begun(3)
    fake.lsn.set(1, 900)
    const onOld = await user.checkout(0, 'primary')
    promote(2)
    await clock.advance(400)
    expect(rolesOf()).toEqual(['stale', 'primary', 'replica'])
    expect(await portOf(user, 'primary')).toBe(2)
    const reads = new Set<number>()
    for (let i = 0; i < 8; i++) reads.add(await portOf(user, 'any'))
    expect([...reads].sort()).toEqual([2, 3])
    expect(onOld.resource.lost).toMatchObject({ code: 'POOL_SUPERSEDED', sqlstate: '57P01' })
  })

  it('the old one is not used either while the new one does not answer', async () => {
    const { user, fake, clock, promote, rolesOf } = await begun()
    fake.kill(1)
    promote(2)
    await clock.advance(400)
    expect(await portOf(user, 'primary')).toBe(2)
    fake.down.delete(1)
    fake.kill(2)
    await clock.advance(1000)
    expect(rolesOf()).toEqual(['stale', 'unknown'])
    const failing = portOf(user, 'primary').catch((error: unknown) => error)
    await clock.advance(5200)
    expect(await failing).toMatchObject({ code: 'POOL_NO_PRIMARY' })
  })

  it('at the start nobody is the primary before all were asked, or had their time', async () => {
    const { user, fake, clock, pools } = start(autos())
    fake.timeline.set(2, 2)
    fake.silent.add(2)
    pools.start()
    await clock.advance(300)
    const early = user.checkout(0, 'primary')
    expect(early).toBeInstanceOf(Promise)
    await clock.advance(1000)
    expect((await early).resource.target.port).toBe(1)
  })
})

describe('asking hosts', () => {
  it('D100: asks at the interval', async () => {
    const { fake, clock } = await begun()
    fake.asked.length = 0
    await clock.advance(3330)
    // beats of 333 ms, an interval of 200: at each beat
    expect(fake.asked.filter((port) => port === 2)).toHaveLength(10)
  })

  it('D99: asks the others at once, not at the interval, while a caller waits for a primary', async () => {
    const { user, fake, clock, promote } = await begun(2, { roleCheckIntervalMs: 60_000 })
    fake.kill(1)
    const written = portOf(user, 'primary')
    await clock.advance(1000)
    promote(2)
    await clock.advance(150)
    expect(await written).toBe(2)
  })
})
