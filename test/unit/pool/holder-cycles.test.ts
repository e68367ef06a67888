import { describe, expect, it } from 'vitest'
import type { ServerCheckout } from '../../../src/pool/shard-pools.js'
import type { UserPools } from '../../../src/pool/user-pools.js'
import { collectServers } from '../../../src/session/state/collect-servers.js'
import { settled } from '../../support/fake-clock.js'
import { defineHost, definePool } from './define.js'
import { start } from './fake-hosts.js'

/** Two or more shards with pools of one. */
function shards(count: number, maxSize = 1) {
  const all = start([defineHost({ port: 1 })])
  const hosts = Array.from({ length: count }, (_, shard) => [
    defineHost({ port: shard + 1, limits: { maxSize, reservedForHolders: maxSize > 1 ? 1 : 0 } }),
  ])
  all.pools.apply([definePool(hosts, { user: 'two' })])
  return { ...all, user: all.pools.shardPools('two', 'app') as UserPools }
}

/** One client: takes servers one after the other. */
function client(user: UserPools, order: number) {
  const owner = { order }
  const held: ServerCheckout[] = []
  return {
    held,
    async take(shard: number) {
      const holdsServers = held.length > 0
      const got = await user.checkout(shard, 'primary', { owner, holdsServers })
      held.push(got)
      return got
    },
  }
}

/** A client whose statement needs servers of several shards, and that has used none yet. */
function collector(user: UserPools, order: number) {
  const owner = { order, giveBack: undefined as (() => void) | undefined }
  const held = new Set<ServerCheckout>()
  let waiting: AbortController | undefined
  const add = (one: ServerCheckout) => {
    held.add(one)
    return one
  }
  return {
    owner,
    stops: 0,
    isSentBack: false,
    get size() {
      return held.size
    },
    acquire(shard: number): ServerCheckout | Promise<ServerCheckout> {
      waiting = new AbortController()
      const holdsServers = held.size > 0 || this.isSentBack
      const options = { owner, holdsServers, signal: waiting.signal }
      const got = user.checkout(shard, 'primary', options)
      return got instanceof Promise ? got.then(add) : add(got)
    },
    release(one: ServerCheckout) {
      held.delete(one)
      one.release()
    },
    leaveQueue: () => waiting?.abort(),
    whenGivenBack: () => Promise.resolve(),
  }
}

const outcomeOf = (promise: Promise<unknown>) => {
  const outcome: { value?: unknown; error?: unknown } = {}
  promise.then(
    (value) => {
      outcome.value = value
    },
    (error: unknown) => {
      outcome.error = error
    },
  )
  return outcome
}

describe('transactions that wait for each other (hard-parts §3.4)', () => {
  it('two: the youngest fails at once with 40001, the other goes on when it has let go', async () => {
    const { user } = shards(2)
    const [old, young] = [client(user, 1), client(user, 2)]
    await old.take(0)
    await young.take(1)
    const waiting = outcomeOf(old.take(1))
    await settled()
    expect(waiting).toEqual({})
    const failing = outcomeOf(young.take(0))
    await settled()
    expect(failing.error).toMatchObject({ code: 'POOL_HOLDERS_DEADLOCK', sqlstate: '40001' })
    young.held[0]!.release()
    await settled()
    expect(waiting.value).toBeDefined()
  })

  it('the youngest gives way also when an older one closes the circle, and over three shards', async () => {
    const { user } = shards(3)
    const clients = [client(user, 3), client(user, 1), client(user, 2)]
    for (const [shard, one] of clients.entries()) await one.take(shard)
    const outcomes = clients.map((one, shard) => outcomeOf(one.take((shard + 1) % 3)))
    await settled()
    expect(outcomes[0]!.error).toMatchObject({ code: 'POOL_HOLDERS_DEADLOCK' })
    clients[0]!.held[0]!.release()
    await settled()
    expect(outcomes[2]!.value).toBeDefined()
    expect(outcomes[1]).toEqual({})
  })

  it('who only waits behind a circle does not give way in vain', async () => {
    const { user } = shards(3)
    const [old, young, behind] = [client(user, 1), client(user, 2), client(user, 3)]
    await old.take(0)
    await young.take(1)
    await behind.take(2)
    const blocked = outcomeOf(behind.take(0))
    const waiting = outcomeOf(old.take(1))
    await settled()
    const failing = outcomeOf(young.take(0))
    await settled()
    expect(failing.error).toMatchObject({ code: 'POOL_HOLDERS_DEADLOCK' })
    young.held[0]!.release()
    await settled()
    expect(waiting.value).toBeDefined()
    expect(blocked).toEqual({})
  })

  it('nobody fails while one of those who hold can go on', async () => {
    const { user } = shards(2)
    const [busy, waiter] = [client(user, 1), client(user, 2)]
    await busy.take(0)
    await waiter.take(1)
    const waiting = outcomeOf(waiter.take(0))
    await settled()
    expect(waiting).toEqual({})
    busy.held[0]!.release()
    await settled()
    expect(waiting.value).toBeDefined()
  })

  it('with pools of two one slot is kept for those that hold, who go ahead of the others', async () => {
    const { user } = shards(2, 2)
    const [first, second] = [client(user, 1), client(user, 2)]
    await first.take(0)
    await second.take(1)
    const outsider = outcomeOf(client(user, 3).take(1))
    await settled()
    expect(outsider).toEqual({})
    await first.take(1)
    await second.take(0)
    expect(first.held).toHaveLength(2)
    expect(second.held).toHaveLength(2)
  })

  it('a scatter gives back what it has not used to one who holds others: nobody fails', async () => {
    const { user } = shards(3)
    const transaction = client(user, 1)
    await transaction.take(2)
    const scatter = collector(user, 2)
    const all = outcomeOf(collectServers(scatter, [0, 1, 2], 'primary'))
    for (let i = 0; i < 3; i++) await settled()
    expect(scatter.size).toBe(2)
    await transaction.take(1)
    await transaction.take(0)
    expect(all).toEqual({})
    // who comes now stands behind the scatter
    const late = outcomeOf(client(user, 3).take(0))
    for (const one of transaction.held) one.release()
    await settled()
    expect(all.value).toHaveLength(3)
    expect(late).toEqual({})
  })

  it('a scatter that got a server for which a holder waits gives it back before it waits for the next', async () => {
    const { user } = shards(2)
    const other = client(user, 1)
    await other.take(0)
    const transaction = client(user, 2)
    await transaction.take(1)
    const scatter = collector(user, 3)
    scatter.isSentBack = true
    const all = outcomeOf(collectServers(scatter, [0, 1], 'primary'))
    await settled()
    const wanted = outcomeOf(transaction.take(0))
    await settled()
    other.held[0]!.release()
    await settled()
    expect(wanted.value).toBeDefined()
    for (const one of transaction.held) one.release()
    await settled()
    expect(all.value).toHaveLength(2)
  })

  it('a scatter whose servers are not free yet waits for that before it stands in line again', async () => {
    let isArrived = false
    let tries = 0
    let end: ((error: Error) => void) | undefined
    const scatter = {
      owner: { order: 1, giveBack: undefined as (() => void) | undefined },
      size: 0,
      stops: 0,
      isSentBack: false,
      acquire(shard: number): string | Promise<string> {
        if (shard === 0 || isArrived) return `server of ${shard}`
        // a loop of promises alone would keep everything else from running
        if (++tries > 100) throw new Error('it asks without end')
        const wait = new Promise<string>((_, reject) => {
          end = reject
        })
        // a transaction waits for what is released, and goes on seeing it lent
        queueMicrotask(() => scatter.owner.giveBack?.())
        return wait
      },
      release: () => undefined,
      leaveQueue: () => end?.(new Error('left')),
      whenGivenBack: async () => {
        await new Promise((resolve) => setImmediate(resolve))
        isArrived = true
      },
    }
    expect(await collectServers(scatter, [0, 1], 'primary')).toEqual(['server of 0', 'server of 1'])
    expect(tries).toBe(1)
  })
})
