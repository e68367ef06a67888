/** Servers opened for definitions that come soon: taken over by the exchange, given back when it does not come. */
import { expect, test } from 'vitest'
import { defineHost, definePool } from './define.js'
import { portOf, start } from './fake-hosts.js'

const newSide = () =>
  definePool([
    [defineHost({ port: 7, limits: { maxSize: 3 } })],
    [defineHost({ port: 8, limits: { maxSize: 9 } })],
  ])

const idleOf = (servers: readonly { target: { port: number }; lost?: unknown }[], port: number) =>
  servers.filter((server) => server.target.port === port && server.lost === undefined).length

test('as many servers as a host of before has, within the limit; the exchange opens none', async () => {
  const { user, fake, pools, clock } = start([defineHost({ port: 1, limits: { maxSize: 9 } })])
  const lent = await Promise.all([1, 2, 3, 4, 5].map(() => user.checkout(0, 'primary')))
  pools.openAhead([newSide()])
  expect(pools.isAheadOpen).toBe(false)
  await clock.advance(1)
  expect(pools.isAheadOpen).toBe(true)
  expect([idleOf(fake.servers, 7), idleOf(fake.servers, 8)]).toEqual([3, 5])
  for (const checkout of lent) checkout.release()
  const opened = fake.opened.length
  pools.apply([newSide()])
  pools.closeAhead()
  expect(await portOf(user, 'primary')).toBe(7)
  const checkout = await user.checkout(1, 'primary')
  expect(checkout.resource.target.port).toBe(8)
  checkout.release()
  expect(fake.opened.length).toBe(opened)
  expect([idleOf(fake.servers, 7), idleOf(fake.servers, 8)]).toEqual([3, 5])
})

test('what no exchange takes is closed; a paused database lends none of it before it is resumed', async () => {
  const { user, fake, pools, clock } = start([defineHost({ port: 1 })])
  await portOf(user, 'primary')
  pools.openAhead([newSide()])
  await clock.advance(1)
  pools.closeAhead()
  expect([idleOf(fake.servers, 7), idleOf(fake.servers, 8)]).toEqual([0, 0])
  expect(pools.isAheadOpen).toBe(true)

  pools.openAhead([newSide()])
  await clock.advance(1)
  await pools.pause({ database: 'app' })
  pools.apply([newSide()])
  pools.closeAhead()
  const waiting = user.checkout(1, 'primary')
  let isLent = false
  void Promise.resolve(waiting).then(() => {
    isLent = true
  })
  await clock.advance(1)
  expect(isLent).toBe(false)
  pools.resume({ database: 'app' })
  expect((await waiting).resource.target.port).toBe(8)
  expect(idleOf(fake.servers, 8)).toBe(1)
})

test('a host that cannot be reached is tried again when it is looked at', async () => {
  const { user, fake, pools, clock } = start([defineHost({ port: 1 })])
  await portOf(user, 'primary')
  fake.down.add(8)
  pools.openAhead([newSide()])
  await clock.advance(1)
  expect(pools.isAheadOpen).toBe(false)
  fake.down.delete(8)
  await clock.advance(1000)
  pools.tendAhead()
  await clock.advance(1)
  expect(pools.isAheadOpen).toBe(true)
})
