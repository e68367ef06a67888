/** What a hub tells its server, and whom it tells of what. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { EngineError } from '../../../src/errors/engine-error.js'
import type { Subscriber } from '../../../src/pubsub/hub.js'
import { Hub } from '../../../src/pubsub/hub.js'
import type { Notification } from '../../../src/pubsub/notification.js'
import { FakeClock } from '../../support/fake-clock.js'
import { FakeListeningServer } from './fake-listening-server.js'

const silentLog = { info: () => undefined, warn: () => undefined, error: () => undefined }

class Ear implements Subscriber {
  readonly user = 'alice'
  readonly heard: string[] = []
  settledTimes = 0
  error: EngineError | undefined

  notified({ channel, payload }: Notification): boolean {
    this.heard.push(`${channel}:${payload}`)
    return true
  }

  settled(): void {
    this.settledTimes++
  }

  lost(error: EngineError): void {
    this.error = error
  }
}

describe('Hub', () => {
  let clock: FakeClock
  let servers: FakeListeningServer[]
  let isCurrent: boolean
  let hub: Hub

  beforeEach(() => {
    clock = new FakeClock()
    servers = []
    isCurrent = true
    hub = new Hub({
      database: 'app',
      clock,
      log: silentLog as never,
      open: async () => {
        const server = new FakeListeningServer()
        servers.push(server)
        return server.connection
      },
      isCurrent: () => isCurrent,
      answerMs: () => 5000,
    })
  })

  const pass = async (ms: number): Promise<void> => {
    for (let at = 0; at < ms; at += 1000) await clock.advance(Math.min(1000, ms - at))
  }

  it('listens once to a channel, however many join it, and at once to those it knows', async () => {
    const [first, second] = [new Ear(), new Ear()]
    await hub.join(['a', 'we"ird'], first)
    expect(servers[0]?.told).toEqual(['LISTEN "a"; LISTEN "we""ird"'])
    // what is on its way to others is not for the second: an answer tells that it has come
    await hub.join(['a'], second)
    expect(servers[0]?.told.at(-1)).toBe('')
    expect(hub.join(['a'], second)).toBeUndefined()
    servers[0]?.notify('a', 'one')
    servers[0]?.notify('we"ird', 'two')
    servers[0]?.notify('unknown', 'three')
    expect(first.heard).toEqual(['a:one', 'we"ird:two'])
    expect(second.heard).toEqual(['a:one'])
    expect(second.settledTimes).toBe(1)
    expect(hub.channels()).toMatchObject([
      { channel: 'a', listeners: 2, received: 1 },
      { channel: 'we"ird', listeners: 1, received: 1 },
    ])
  })

  it('a join is done when the server has confirmed it, not before', async () => {
    await hub.join(['a'], new Ear())
    const server = servers[0]!
    server.isPrompt = false
    const ear = new Ear()
    let isDone = false
    const joining = hub.join(['b'], ear)?.then(() => {
      isDone = true
    })
    const another = hub.join(['c'], ear)
    await Promise.resolve()
    expect(server.told).toEqual(['LISTEN "a"', 'LISTEN "b"'])
    expect(isDone).toBe(false)
    server.isPrompt = true
    server.answer()
    await joining
    await another
    expect(server.told.at(-1)).toBe('LISTEN "c"')
    expect(servers).toHaveLength(1)
  })

  it('gives up a channel that nobody has wanted for a while, and then its connection', async () => {
    const ear = new Ear()
    await hub.join(['a', 'b'], ear)
    hub.leave('a', ear)
    await pass(5000)
    expect(servers[0]?.told).toHaveLength(1)
    // wanted again in time: it was never given up
    await hub.join(['a'], ear)
    expect(servers[0]?.told.at(-1)).toBe('')
    hub.leave('a', ear)
    await pass(12_000)
    expect(servers[0]?.told.at(-1)).toBe('UNLISTEN "a"')
    await hub.join(['a'], ear)
    expect(servers[0]?.told.at(-1)).toBe('LISTEN "a"')
    hub.leave('a', ear)
    hub.leave('b', ear)
    await pass(20_000)
    expect(hub.connection).toBeUndefined()
    expect(servers[0]?.lost).toBeDefined()
    expect(ear.error).toBeUndefined()
    await hub.join(['a'], ear)
    expect(servers).toHaveLength(2)
  })

  it('tells everyone who has joined when the connection is lost, once, and opens another for the next', async () => {
    const [ear, gone] = [new Ear(), new Ear()]
    await hub.join(['a', 'b'], ear)
    await hub.join(['a'], gone)
    hub.leave('a', gone)
    servers[0]?.fail('terminating connection due to administrator command')
    servers[0]?.end('closed')
    expect(ear.error?.code).toBe('PUBSUB_LOST')
    expect(ear.error?.message).toMatch(/administrator command/)
    expect(gone.error).toBeUndefined()
    await hub.join(['a'], gone)
    servers[1]?.notify('a', 'new')
    expect(gone.heard).toEqual(['a:new'])
    expect(ear.heard).toEqual([])
  })

  it('rejects who waits to join when the connection is lost or the server refuses', async () => {
    await hub.join(['a'], new Ear())
    const server = servers[0]!
    server.isPrompt = false
    const refused = hub.join(['b'], new Ear())
    await Promise.resolve()
    server.fail('out of memory')
    server.answer()
    await expect(refused).rejects.toThrow('out of memory')
    const cut = hub.join(['c'], new Ear())
    await Promise.resolve()
    server.end('cut')
    await expect(cut).rejects.toThrow()
  })

  it('leaves a server that is no longer the primary, and one that does not answer', async () => {
    const ear = new Ear()
    await hub.join(['a'], ear)
    isCurrent = false
    await pass(1000)
    expect(ear.error?.message).toMatch(/no longer the primary/)
    isCurrent = true
    const deaf = new Ear()
    await hub.join(['a'], deaf)
    servers[1]!.isPrompt = false
    await pass(30_000)
    expect(deaf.error).toBeUndefined()
    await pass(6000)
    expect(deaf.error?.message).toMatch(/did not answer/)
  })
})
