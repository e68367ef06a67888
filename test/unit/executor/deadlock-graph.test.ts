import { describe, expect, it } from 'vitest'
import {
  type Party,
  type ShardWaits,
  victimsOfDeadlocks,
} from '../../../src/executor/deadlock-graph.js'

/** A transaction with a process `10 * shard + n` on each of `shards`. */
const party = (n: number, shards: readonly number[], more: Partial<Party> = {}): Party => ({
  order: n,
  name: `p${n}`,
  servers: shards.map((shard) => ({ shard, pid: 10 * shard + n })),
  decision: undefined,
  ...more,
})

const waits = (shard: number, ...pairs: readonly (readonly [number, number | string])[]) =>
  ({
    shard,
    waits: pairs.map(([pid, on]) => ({
      pid,
      blockers: typeof on === 'number' ? [on] : [0],
      prepared: typeof on === 'string' ? [on] : [],
    })),
  }) satisfies ShardWaits

describe('who waits for whom over shards (hard-parts §3.3)', () => {
  it('names the youngest of a cycle over two shards', () => {
    const [a, b] = [party(1, [0, 1]), party(2, [0, 1])]
    expect(victimsOfDeadlocks([a, b], [waits(0, [2, 1]), waits(1, [11, 12])])).toEqual([b])
    expect(victimsOfDeadlocks([a, b], [waits(0, [2, 1])])).toEqual([])
  })

  it('leaves a cycle within one shard to PostgreSQL', () => {
    const [a, b] = [party(1, [0, 1]), party(2, [0, 1])]
    expect(victimsOfDeadlocks([a, b], [waits(0, [2, 1], [1, 2])])).toEqual([])
  })

  it('sees a transaction that waits for itself, or for one that waits for it, by a server that is apart', () => {
    const servers = [
      { shard: 0, pid: 1 },
      { shard: 0, pid: 9, isApart: true },
    ]
    const a = party(1, [], { servers })
    expect(victimsOfDeadlocks([a], [waits(0, [9, 1])])).toEqual([a])
    expect(victimsOfDeadlocks([a], [waits(0, [9, 7], [7, 1])])).toEqual([a])
    expect(victimsOfDeadlocks([a], [waits(0, [9, 7], [7, 8])])).toEqual([])
  })

  it('goes through processes of which nothing else is known', () => {
    const [a, b] = [party(1, [0, 1]), party(2, [0, 1])]
    const shards = [waits(0, [2, 5], [5, 1]), waits(1, [11, 12])]
    expect(victimsOfDeadlocks([a, b], shards)).toEqual([b])
  })

  it('takes a prepared transaction for the one that prepared it', () => {
    // a has prepared on shard 1, and its decision on shard 0 waits for b
    const [a, b] = [party(1, [0, 1], { decision: 'abc' }), party(2, [0, 1])]
    const shards = [waits(0, [1, 2]), waits(1, [12, 'abc'])]
    expect(victimsOfDeadlocks([a, b], shards)).toEqual([b])
    const other = party(1, [0, 1], { decision: 'def' })
    expect(victimsOfDeadlocks([other, b], shards)).toEqual([])
  })

  it('of two that began in one moment takes the same one in every process', () => {
    const [a, b] = [party(1, [0, 1], { order: 7 }), party(2, [0, 1], { order: 7 })]
    const shards = [waits(0, [2, 1]), waits(1, [11, 12])]
    expect(victimsOfDeadlocks([a, b], shards)).toEqual([b])
    expect(victimsOfDeadlocks([b, a], shards)).toEqual([b])
  })

  it('names one of each cycle that the ones before leave', () => {
    const [a, b, c, d] = [1, 2, 3, 4].map((n) => party(n, [0, 1])) as [Party, Party, Party, Party]
    // a and d, and b and c, wait for each other; c waits for d too
    const apart = [waits(0, [4, 1], [3, 2], [3, 4]), waits(1, [11, 14], [12, 13])]
    expect(victimsOfDeadlocks([a, b, c, d], apart)).toEqual([d, c])
    // all wait for a, and a for b: without b nobody waits in a circle
    const star = [waits(0, [2, 1], [3, 1], [4, 1]), waits(1, [11, 12])]
    expect(victimsOfDeadlocks([a, b, c, d], star)).toEqual([b])
  })

  it('goes through the lines of our pools', () => {
    // a has all servers of shard 1 and waits for a lock of b, who stands in line for shard 1
    const [a, b] = [party(1, [0, 1]), party(2, [0])]
    const pools = [{ party: b, shard: 1, holders: [a] }]
    expect(victimsOfDeadlocks([a, b], [waits(0, [1, 2])], pools)).toEqual([b])
    expect(victimsOfDeadlocks([a, b], [], pools)).toEqual([])
  })
})
