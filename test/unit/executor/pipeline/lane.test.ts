/** The rules of hard-parts §1 on one lane, each against a scripted server. */
import { expect, test } from 'vitest'
import { engineError } from '../../../../src/errors/engine-error.js'
import { Settings } from '../../../../src/server/settings.js'
import type { SharedStatement } from '../../../../src/server/shared-statement.js'
import {
  answerFor,
  endOfTick,
  FakeClient,
  failure,
  parseComplete,
  passes,
  ready,
  rig,
  row,
  type ScriptedServer,
  status,
} from './rig.js'

test('hands answers to whom they belong, and joins the writes of one tick', async () => {
  const { server, run, pool } = rig()
  const [a, b, c] = [run('a').client, run('b').client, run('c').client]
  expect(server.socket.writes).toEqual(['<a>'])
  await endOfTick()
  expect(server.socket.writes).toEqual(['<a>', '<b><c>'])
  const all = Buffer.concat([answerFor('for a'), answerFor('for b'), answerFor('for c')])
  // cut anywhere, also inside frames
  for (const byte of all) server.says(Buffer.from([byte]))
  expect(a.answer).toEqual(answerFor('for a'))
  expect(b.answer).toEqual(answerFor('for b'))
  expect(c.answer).toEqual(answerFor('for c'))
  expect(c.events).toEqual(['ready', 'finished'])
  expect(pool.events).toEqual(['released'])
})

test('keeps an error with its statement', async () => {
  const { server, run } = rig()
  const [a, b] = [run('a').client, run('b').client]
  await endOfTick()
  server.says(failure('22012'), ready, answerFor('for b'))
  expect(a.events).toEqual(['failed', 'ready', 'finished'])
  expect(b.answer).toEqual(answerFor('for b'))
})

test('lets followers run elsewhere when the head stalls, and drops their late answers', async () => {
  const { server, run, clock, pool } = rig()
  const head = run('head').client
  const follower = run('follower')
  await endOfTick()
  await passes(clock, 19)
  expect(follower.client.events).toEqual([])
  await passes(clock, 10)
  expect(follower.client.events).toEqual(['elsewhere'])
  expect(head.events).toEqual([])
  // a class that makes others wait again and again will leave
  expect(head.figures.meanMs).toBeGreaterThan(2)
  server.says(answerFor('for head'), answerFor('late'))
  expect(head.answer).toEqual(answerFor('for head'))
  expect(follower.client.answer).toHaveLength(0)
  expect(pool.events).toEqual(['released'])
})

test('takes no more on a lane that stalled', async () => {
  const { run, clock } = rig()
  run('head')
  run('follower')
  await endOfTick()
  await passes(clock, 30)
  expect(run('late').lane.isWaiting).toBe(true)
})

test('loses only the head with its server', async () => {
  const { server, run, pool } = rig()
  const [head, second, third] = [run('head').client, run('second').client, run('third').client]
  await endOfTick()
  server.says(row('half'), failure('57P01', 'FATAL'))
  server.isLost()
  expect(head.events).toEqual(['failed', 'lost with FATAL'])
  expect(second.events).toEqual(['elsewhere'])
  expect(third.events).toEqual(['elsewhere'])
  expect(second.answer).toHaveLength(0)
  expect(pool.events[0]).toMatch(/^discarded/)
})

test('runs a statement again that is cancelled although nobody asked', async () => {
  const { server, run } = rig()
  const head = run('head').client
  const follower = run('follower').client
  await endOfTick()
  server.says(answerFor('for head'), failure('57014'), ready)
  expect(head.events).toEqual(['ready', 'finished'])
  expect(follower.events).toEqual(['elsewhere'])
  expect(follower.answer).toHaveLength(0)
})

test('hands a cancel of its own to the head, and spares who stands behind it', async () => {
  const { server, run, pool } = rig()
  const head = run('head')
  const follower = run('follower').client
  const third = run('third').client
  await endOfTick()
  expect(head.lane?.cancel(head.client)).toBe(false)
  expect(server.cancels).toHaveLength(1)
  // no more statements for a server that a cancel is on its way to
  expect(run('late').lane.isWaiting).toBe(true)
  server.says(failure('57014'), ready, row('half'), failure('57014'), ready, answerFor('for third'))
  expect(head.client.events).toEqual(['failed', 'ready', 'finished'])
  expect(follower.events).toEqual(['elsewhere'])
  expect(follower.answer).toHaveLength(0)
  expect(third.answer).toEqual(answerFor('for third'))
  // the cancel may still hit whatever runs there
  expect(pool.events).toEqual([])
  server.cancels[0]?.()
  await endOfTick()
  expect(pool.events).toEqual(['released'])
})

test('never sends a request that is cancelled while it waits', async () => {
  const { server, run } = rig()
  const head = run('head').client
  const queued = run('queued')
  const third = run('third').client
  expect(queued.lane?.cancel(queued.client)).toBe(true)
  await endOfTick()
  expect(server.socket.writes).toEqual(['<head>', '<third>'])
  expect(server.cancels).toHaveLength(0)
  server.says(answerFor('for head'), answerFor('for third'))
  expect(head.answer).toEqual(answerFor('for head'))
  expect(third.answer).toEqual(answerFor('for third'))
})

test('drops the answer of a follower that was cancelled after it was sent', async () => {
  const { server, run } = rig()
  run('head')
  const queued = run('queued')
  const third = run('third').client
  await endOfTick()
  expect(queued.lane?.cancel(queued.client)).toBe(true)
  expect(server.cancels).toHaveLength(0)
  server.says(answerFor('for head'), answerFor('late'), answerFor('for third'))
  expect(queued.client.answer).toHaveLength(0)
  expect(third.answer).toEqual(answerFor('for third'))
})

test('lets a client leave without disturbing the others, and stops what it left running', async () => {
  const { server, run, clock } = rig()
  const head = run('head')
  const follower = run('follower').client
  await endOfTick()
  head.lane?.leave(head.client)
  server.says(row('half'))
  expect(head.client.answer).toHaveLength(0)
  await passes(clock, 30)
  expect(follower.events).toEqual(['elsewhere'])
  expect(server.cancels).toHaveLength(1)
})

test('moves followers away from a head that does not read, and pauses its server', async () => {
  const { server, run, limits } = rig()
  const head = run('head')
  const follower = run('follower').client
  await endOfTick()
  head.client.queuedBytes = limits.replyBufferBytes - 1
  server.says(row('big'))
  expect(follower.events).toEqual([])
  expect(server.socket.isPaused).toBe(false)
  head.client.queuedBytes = limits.replyBufferBytes + 1
  server.says(row('bigger'))
  expect(follower.events).toEqual(['elsewhere'])
  expect(server.socket.isPaused).toBe(true)
  head.lane?.resume()
  expect(server.socket.isPaused).toBe(false)
})

test('writes nothing that needs a Parse behind one that is not confirmed', async () => {
  const { server, pipeline, clock } = rig()
  const statement: SharedStatement = {
    serverName: 's',
    text: 'select 1',
    parameterTypes: [],
    isSql: false,
    reading: Settings.none,
    epoch: 0,
    shape: undefined,
    uses: 2,
  }
  const client = (name: string) => Object.assign(new FakeClient(name), { statement })
  pipeline.run(client('a'), clock.monotonicMs())
  const second = client('b')
  expect(pipeline.run(second, clock.monotonicMs()).isWaiting).toBe(true)
  expect(server.connection.prepared.has(statement)).toBe(false)
  await endOfTick()
  expect(server.socket.writes.join('')).not.toMatch(/<b>/)
  server.says(parseComplete)
  expect(server.connection.prepared.has(statement)).toBe(true)
  expect(second.events).toEqual(['carried'])
  await endOfTick()
  expect(server.socket.writes.join('')).toMatch(/<b>/)
})

test('does not count a statement as prepared whose Parse failed', () => {
  const { server, pipeline, clock } = rig()
  const statement = { serverName: 's', text: 'x', parameterTypes: [], epoch: 0, shape: undefined }
  const client = Object.assign(new FakeClient('a'), { statement: { ...statement, uses: 2 } })
  pipeline.run(client, clock.monotonicMs())
  server.says(failure('42P01'), ready)
  expect(client.events).toEqual(['failed', 'ready', 'finished'])
  expect(server.connection.prepared.size).toBe(0)
})

test('keeps what a server says on its own in the server’s record', async () => {
  const { server, run } = rig()
  const head = run('head').client
  server.says(answerFor('for head'))
  server.says(status('TimeZone', 'UTC'))
  expect(server.connection.parameters.get('TimeZone')).toBe('UTC')
  expect(head.answer).toEqual(answerFor('for head'))
  expect(head.events).not.toContain('status')
  const next = run('next').client
  server.says(status('TimeZone', 'Asia/Tokyo'), answerFor('for next'))
  expect(next.events).toEqual(['status', 'ready', 'finished'])
  expect(next.answer).toEqual(answerFor('for next'))
})

test('puts settings on first, but never the name of the application', async () => {
  const { server, pipeline, clock } = rig()
  server.connection.settings = Settings.none.with('application_name', "'other'")
  const wanted = Settings.none.with('work_mem', "'8MB'")
  const client = Object.assign(new FakeClient('a'), { settings: wanted.pipelined })
  pipeline.run(client, clock.monotonicMs())
  await endOfTick()
  expect(server.socket.writes[0]).toMatch(/SET work_mem TO '8MB'/)
  expect(server.socket.writes.join('')).not.toMatch(/application_name/)
  expect(server.socket.writes.join('')).toMatch(/<a>$/)
  server.says(ready, answerFor('for a'))
  expect(client.answer).toEqual(answerFor('for a'))
  expect(server.connection.settings.values.get('work_mem')).toBe("'8MB'")
  expect(server.connection.settings.values.get('application_name')).toBe("'other'")
})

test('lets everybody run elsewhere when a server refuses the settings', async () => {
  const { server, pipeline, clock, pool } = rig()
  const settings = Settings.none.with('work_mem', "'nonsense'")
  const client = Object.assign(new FakeClient('a'), { settings })
  pipeline.run(client, clock.monotonicMs())
  await endOfTick()
  server.says(failure('22023'), ready)
  expect(client.events).toEqual(['elsewhere'])
  expect(pool.events[0]).toMatch(/^discarded/)
})

test('joins only clients with equal settings', () => {
  const { pipeline, clock, run } = rig()
  run('a')
  const other = Object.assign(new FakeClient('b'), {
    settings: Settings.none.with('datestyle', "'ISO'"),
  })
  expect(pipeline.run(other, clock.monotonicMs()).isWaiting).toBe(true)
})

test('ends a lane early for those who wait for a server', async () => {
  const { run, clock, pool } = rig()
  run('a')
  pool.others = 1
  expect(run('b').lane.isWaiting).toBe(false)
  await clock.advance(6)
  expect(run('c').lane.isWaiting).toBe(true)
})

test('those who find no room wait as one, and a server that comes serves them all', async () => {
  const { servers, run, pool, limits } = rig(2)
  const [first, second] = servers as [ScriptedServer, ScriptedServer]
  limits.depth = 2
  const aside = pool.idle.splice(0, 1)[0] as ScriptedServer
  const clients = ['a', 'b', 'c', 'd', 'e'].map(run)
  expect(clients.map(({ lane }) => lane.isWaiting)).toEqual([false, false, true, true, true])
  expect(pool.asked).toHaveLength(1)
  pool.idle.push(aside)
  await pool.serve()
  await endOfTick()
  expect(first.socket.writes.join('') + second.socket.writes.join('')).toBe('<a><b><c><d>')
  // who waits goes before who comes
  const late = run('f')
  first.says(answerFor('for a'), answerFor('for b'))
  await endOfTick()
  expect(first.socket.writes.join('')).toBe('<a><b><e><f>')
  expect(late.client.events).toEqual(['carried'])
  expect(clients[0]?.client.answer).toEqual(answerFor('for a'))
})

test('a client that waits can cancel or leave; nothing of it reaches a server', async () => {
  const { server, run, pool } = rig()
  pool.idle.length = 0
  const [gone, cancelled, patient] = ['gone', 'cancelled', 'patient'].map(run)
  gone?.lane.leave(gone.client)
  expect(cancelled?.lane.cancel(cancelled.client)).toBe(true)
  pool.idle.push(server)
  await pool.serve()
  await endOfTick()
  expect(server.socket.writes.join('')).toBe('<patient>')
  expect(patient?.client.events).toEqual(['carried'])
})

test('each waits as long as it may, and hears for itself why there is no server', async () => {
  const { run, pool, clock } = rig()
  pool.idle.length = 0
  const early = run('early').client
  await clock.advance(3000)
  const late = run('late').client
  expect(pool.asked[0]?.timeoutMs).toBe(5000)
  await clock.advance(2000)
  const timeout = engineError('POOL_CHECKOUT_TIMEOUT', {
    ...{ timeoutMs: 5000, address: 'h:1', lent: 1, maxSize: 1, waiting: 1 },
  })
  pool.asked.shift()?.reject(timeout)
  await endOfTick()
  expect(early.events).toEqual(['lost'])
  expect(late.events).toEqual([])
  expect(pool.asked[0]?.timeoutMs).toBe(3000)
  pool.asked.shift()?.reject(new Error('offline'))
  await endOfTick()
  expect(late.events).toEqual(['elsewhere'])
})

test('gives a server back now and then although it is never idle', async () => {
  const { run, clock, server, limits, pool } = rig()
  limits.stallMs = 1000
  run('a')
  await clock.advance(251)
  expect(run('b').lane.isWaiting).toBe(true)
  server.says(answerFor('for a'))
  expect(pool.events).toEqual(['released'])
  await pool.serve()
  expect(run('c').lane.isWaiting).toBe(false)
})

test('takes no more than its depth', () => {
  const { run, limits } = rig()
  limits.depth = 2
  expect(run('a').lane.isWaiting).toBe(false)
  expect(run('b').lane.isWaiting).toBe(false)
  expect(run('c').lane.isWaiting).toBe(true)
})
