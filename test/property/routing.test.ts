import fc from 'fast-check'
import { beforeAll, describe, expect, it } from 'vitest'
import type { QueryPlanner } from '../../src/plan/plan.js'
import { openQueryPlanner } from '../../src/routing/query-planner.js'
import { listShards } from '../../src/sharding/shard-set.js'
import { routingConfig } from '../support/routing-config.js'

let planner: QueryPlanner
beforeAll(async () => {
  planner = await openQueryPlanner({ sharding: routingConfig })
})

/** Shards that a scan of `orders` under a condition asks; conditions here are all concatenable. */
function shardsOf(condition: string): readonly number[] {
  const { statements } = planner.plan(`select id from orders where ${condition}`)
  const plan = statements[0]!.route(undefined, { searchPath: ['public'] })
  expect(plan.how, condition).not.toBe('refuse')
  return listShards(plan.target, 4)
}

/** A condition, and whether a row (tenant, x) meets it; null is SQL's unknown. */
interface Condition {
  text: string
  holds(tenant: number | null, x: number): boolean | null
}

const key = fc.integer({ min: -3, max: 12 })
const leaf: fc.Arbitrary<Condition> = fc.oneof(
  key.map((k) => ({
    text: `tenant = ${k}`,
    holds: (t: number | null) => (t === null ? null : t === k),
  })),
  key.map((k) => ({
    text: `${k} = orders.tenant`,
    holds: (t: number | null) => (t === null ? null : t === k),
  })),
  fc.array(key, { minLength: 1, maxLength: 4 }).map((ks) => ({
    text: `tenant in (${ks.join(', ')})`,
    holds: (t: number | null) => (t === null ? null : ks.includes(t)),
  })),
  fc.array(key, { maxLength: 4 }).map((ks) => ({
    text: `tenant = any ('{${ks.join(',')}}')`,
    holds: (t: number | null) => (ks.length === 0 ? false : t === null ? null : ks.includes(t)),
  })),
  fc.constant({ text: 'tenant is null', holds: (t: number | null) => t === null }),
  key.map((k) => ({
    text: `tenant is not distinct from ${k}`,
    holds: (t: number | null) => t === k,
  })),
  key.map((k) => ({ text: `x > ${k}`, holds: (_: number | null, x: number) => x > k })),
  key.map((k) => ({
    text: `tenant > ${k}`,
    holds: (t: number | null) => (t === null ? null : t > k),
  })),
  fc.constant({ text: 'false', holds: () => false }),
  fc.tuple(key, key).map(([k, v]) => ({
    text: `(tenant, x) = (${k}, ${v})`,
    holds: (t: number | null, x: number) => (x !== v ? false : t === null ? null : t === k),
  })),
)

const and = (a: boolean | null, b: boolean | null) =>
  a === false || b === false ? false : a === null || b === null ? null : true
const or = (a: boolean | null, b: boolean | null) =>
  a === true || b === true ? true : a === null || b === null ? null : false

const { condition } = fc.letrec<{ condition: Condition }>((tie) => ({
  condition: fc.oneof(
    { maxDepth: 4 },
    leaf,
    fc.tuple(tie('condition'), tie('condition')).map(([a, b]) => ({
      text: `(${a.text} and ${b.text})`,
      holds: (t: number | null, x: number) => and(a.holds(t, x), b.holds(t, x)),
    })),
    fc.tuple(tie('condition'), tie('condition')).map(([a, b]) => ({
      text: `(${a.text} or ${b.text})`,
      holds: (t: number | null, x: number) => or(a.holds(t, x), b.holds(t, x)),
    })),
    tie('condition').map((a) => ({
      text: `not (${a.text})`,
      holds: (t: number | null, x: number) => {
        const inner = a.holds(t, x)
        return inner === null ? null : !inner
      },
    })),
    tie('condition').map((a) => ({
      text: `(${a.text}) is true`,
      holds: (t: number | null, x: number) => a.holds(t, x) === true,
    })),
  ),
}))

/** The shard of each key that the conditions speak of. */
function placeOf(tenant: number | null): number {
  const text = tenant === null ? 'tenant is null' : `tenant = ${tenant}`
  return shardsOf(text)[0]!
}

describe('shards of a condition', () => {
  it('hold every row that meets it', () => {
    const rows: [number | null, number][] = []
    for (let tenant = -3; tenant <= 12; tenant++) rows.push([tenant, 2], [tenant, 7])
    rows.push([null, 2], [null, 7])
    fc.assert(
      fc.property(condition, (one) => {
        const shards = shardsOf(one.text)
        for (const [tenant, x] of rows) {
          if (one.holds(tenant, x) === true) expect(shards).toContain(placeOf(tenant))
        }
      }),
      { numRuns: 600, seed: 20261129 },
    )
  })

  it('never widen under AND, and stay within the union under OR', () => {
    fc.assert(
      fc.property(condition, condition, (a, b) => {
        const left = shardsOf(a.text)
        const right = shardsOf(b.text)
        const both = shardsOf(`(${a.text}) and (${b.text})`)
        const either = shardsOf(`(${a.text}) or (${b.text})`)
        for (const shard of both) {
          expect(left).toContain(shard)
          expect(right).toContain(shard)
        }
        for (const shard of either) expect([...left, ...right]).toContain(shard)
      }),
      { numRuns: 600, seed: 20261130 },
    )
  })
})
