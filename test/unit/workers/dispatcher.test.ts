import { describe, expect, it } from 'vitest'
import type { AcceptedHandle } from '../../../src/net/adopt-accepted.js'
import { canReusePort } from '../../../src/net/listener.js'
import { Dispatcher, type Taker } from '../../../src/workers/dispatcher.js'
import type { Order } from '../../../src/workers/messages.js'
import { StandingOrders } from '../../../src/workers/standing-orders.js'

class FakeWorker implements Taker {
  isReady = true
  connections = 0
  readonly taken: AcceptedHandle[] = []

  give(handle: AcceptedHandle): void {
    this.connections++
    this.taken.push(handle)
  }
}

function handle() {
  const one = { isClosed: false, close: () => undefined }
  one.close = () => {
    one.isClosed = true
    return undefined
  }
  return one
}

describe('dealing connections out', () => {
  it('B5: gives each to the worker with the fewest, in turn among equals', () => {
    const workers = [new FakeWorker(), new FakeWorker(), new FakeWorker()]
    const dispatcher = new Dispatcher(() => workers)
    for (let i = 0; i < 9; i++) dispatcher.deal(handle())
    expect(workers.map(({ connections }) => connections)).toEqual([3, 3, 3])
    workers[1]!.connections = 0
    for (let i = 0; i < 3; i++) dispatcher.deal(handle())
    expect(workers[1]!.connections).toBe(3)
  })

  it('takes turns when each connection has gone before the next comes', () => {
    const workers = [new FakeWorker(), new FakeWorker()]
    const dispatcher = new Dispatcher(() => workers)
    for (let i = 0; i < 10; i++) {
      dispatcher.deal(handle())
      for (const worker of workers) worker.connections = 0
    }
    expect(workers.map(({ taken }) => taken.length)).toEqual([5, 5])
  })

  it('lets connections wait while no worker is ready, and closes them at the end', () => {
    const worker = new FakeWorker()
    worker.isReady = false
    const dispatcher = new Dispatcher(() => [worker])
    const [first, second] = [handle(), handle()]
    dispatcher.deal(first)
    expect([worker.connections, first.isClosed]).toEqual([0, false])
    worker.isReady = true
    dispatcher.dealWaiting()
    expect(worker.taken).toEqual([first])
    worker.isReady = false
    dispatcher.deal(second)
    dispatcher.close()
    expect([first.isClosed, second.isClosed]).toEqual([false, true])
    const late = handle()
    dispatcher.deal(late)
    expect(late.isClosed).toBe(true)
  })
})

describe('standing orders', () => {
  const standingAfter = (...orders: Order[]) => {
    const standing = new StandingOrders()
    for (const order of orders) standing.note(order)
    return standing.all
  }
  const pause = (pools = {}): Order => ({ verb: 'pause', pools })
  const resume = (pools = {}): Order => ({ verb: 'resume', pools })

  it('hold until they are taken back', () => {
    expect(standingAfter(pause({ database: 'a' }))).toEqual([pause({ database: 'a' })])
    expect(standingAfter(pause({ database: 'a' }), resume({ database: 'a' }))).toEqual([
      resume({ database: 'a' }),
    ])
    expect(standingAfter(pause({ database: 'a' }), pause(), resume())).toEqual([])
    expect(standingAfter(pause(), resume({ database: 'a' }))).toEqual([
      pause(),
      resume({ database: 'a' }),
    ])
  })

  it('of KILL stays that its database is paused; of RECONNECT and KILL_CLIENT nothing', () => {
    expect(standingAfter({ verb: 'kill', database: 'a' })).toEqual([pause({ database: 'a' })])
    expect(standingAfter({ verb: 'reconnect', pools: {} }, { verb: 'kill_client', id: 1 })).toEqual(
      [],
    )
  })

  it('of BAN and UNBAN the last for each place', () => {
    const place = { user: 'u', database: 'd', address: 'h', port: 1, shard: 0, role: 'replica' }
    expect(standingAfter({ verb: 'ban', place }, { verb: 'unban', place })).toEqual([
      { verb: 'unban', place },
    ])
    expect(standingAfter({ verb: 'ban', place }, { verb: 'unban' })).toEqual([])
    expect(standingAfter(pause(), { verb: 'unban' })).toEqual([pause()])
  })

  it('one that was refused everywhere does not hold', () => {
    const standing = new StandingOrders()
    standing.note(pause({ database: 'nonsense' }))
    standing.forget(pause({ database: 'nonsense' }))
    expect(standing.all).toEqual([])
  })
})

it('B4: a port can be shared by listeners from Node 22.12 on', () => {
  expect(['20.19.0', '22.11.0', '21.9.9'].map((version) => canReusePort(version))).toEqual([
    false,
    false,
    false,
  ])
  expect(['22.12.0', '23.1.0', '24.0.0'].map((version) => canReusePort(version))).toEqual([
    true,
    true,
    true,
  ])
})
