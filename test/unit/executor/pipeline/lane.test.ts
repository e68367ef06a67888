/** The rules of hard-parts §1 on one lane, each against a scripted server. */
import { expect, test } from 'vitest'
import { Settings } from '../../../../src/server/settings.js'
import type { SharedStatement } from '../../../../src/server/shared-statement.js'
import {
  answerFor,
  endOfTick,
  FakeClient,
  failure,
  parseComplete,
  ready,
  rig,
  row,
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
  await clock.advance(19)
  expect(follower.client.events).toEqual([])
  await clock.advance(10)
  expect(follower.client.events).toEqual(['elsewhere'])
  expect(head.events).toEqual([])
  // the class that made others wait runs alone until it is seen to be quick again
  expect(head.figures.meanMs).toBeGreaterThan(5)
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
  await clock.advance(30)
  expect(run('late').lane).toBeUndefined()
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
  expect(run('late').lane).toBeUndefined()
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
  await clock.advance(30)
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
  expect(pipeline.run(client('a'), clock.monotonicMs())).toBeDefined()
  expect(pipeline.run(client('b'), clock.monotonicMs())).toBeUndefined()
  expect(server.connection.prepared.has(statement)).toBe(false)
  server.says(parseComplete)
  expect(server.connection.prepared.has(statement)).toBe(true)
  expect(pipeline.run(client('c'), clock.monotonicMs())).toBeDefined()
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
  expect(pipeline.run(other, clock.monotonicMs())).toBeUndefined()
})

test('ends a lane early for those who wait for a server', async () => {
  const { run, clock, pool } = rig()
  run('a')
  pool.waiting = 1
  expect(run('b').lane).toBeDefined()
  await clock.advance(6)
  expect(run('c').lane).toBeUndefined()
})

test('gives a server back now and then although it is never idle', async () => {
  const { run, clock, server, limits } = rig()
  limits.stallMs = 1000
  run('a')
  await clock.advance(251)
  expect(run('b').lane).toBeUndefined()
  server.says(answerFor('for a'))
  expect(run('c').lane).toBeDefined()
})

test('takes no more than its depth', () => {
  const { run, limits } = rig()
  limits.depth = 2
  expect(run('a').lane).toBeDefined()
  expect(run('b').lane).toBeDefined()
  expect(run('c').lane).toBeUndefined()
})
