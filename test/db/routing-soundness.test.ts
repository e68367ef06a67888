/**
 * Every row that PostgreSQL finds for a condition lies on a shard that the router chose, for all kinds of placement and the
 * types of keys; and simple conditions choose no shard more than they must. Over-routing is counted.
 */
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { KeyType } from '../../src/datum/key-type.js'
import type { BoundParameters, Plan, QueryPlanner } from '../../src/plan/plan.js'
import { openQueryPlanner } from '../../src/routing/query-planner.js'
import { makeKeyPlacer } from '../../src/sharding/key-placer.js'
import { listShards } from '../../src/sharding/shard-set.js'
import type { Placement, ShardedTable } from '../../src/sharding/sharded-table.js'
import { binaryOf } from '../support/key-binary.js'
import { makeRandom } from '../support/random.js'
import { bySize } from '../support/test-size.js'
import { usePostgres } from '../support/use-postgres.js'

const SHARDS = 4
const CONDITIONS = bySize(150, 2500)

interface Case {
  readonly name: string
  readonly keyType: KeyType
  readonly sqlType: string
  readonly values: readonly string[]
  readonly placement: Placement
  /** How a value is written without quotes, when it can be. */
  readonly bare: boolean
}

const hash: Placement = { kind: 'hash', hasher: 'postgres', buckets: 4, bucketMap: [0, 1, 2, 3] }
const numbers = ['-7', '-1', '0', '1', '2', '3', '5', '8', '13', '21', '34']

const cases: readonly Case[] = [
  {
    name: 'hash of bigint',
    keyType: 'bigint',
    sqlType: 'bigint',
    values: numbers,
    placement: hash,
    bare: true,
  },
  {
    name: 'hash of integer',
    keyType: 'integer',
    sqlType: 'integer',
    values: numbers,
    placement: hash,
    bare: true,
  },
  {
    name: 'hash of numeric',
    keyType: 'numeric',
    sqlType: 'numeric',
    values: ['0', '1', '1.50', '-2', '100', '0.001'],
    placement: hash,
    bare: true,
  },
  {
    name: 'hash of text',
    keyType: 'text',
    sqlType: 'text',
    values: ['', 'a', 'b', 'A', 'ä', "o'neil", '1', ' a'],
    placement: hash,
    bare: false,
  },
  {
    name: 'hash of uuid',
    keyType: 'uuid',
    sqlType: 'uuid',
    values: [1, 2, 3, 4, 5, 6].map((n) => `00000000-0000-4000-8000-${String(n).padStart(12, '0')}`),
    placement: hash,
    bare: false,
  },
  {
    name: 'hash of date',
    keyType: 'date',
    sqlType: 'date',
    values: ['2024-01-01', '2024-02-29', '1999-12-31', 'infinity'],
    placement: hash,
    bare: false,
  },
  {
    name: 'range of bigint',
    keyType: 'bigint',
    sqlType: 'bigint',
    values: numbers,
    placement: {
      kind: 'range',
      entries: [
        { end: '0', shard: 0 },
        { start: '0', end: '5', shard: 1 },
        { start: '5', end: '20', shard: 2 },
      ],
      fallback: 3,
    },
    bare: true,
  },
  {
    name: 'range of date',
    keyType: 'date',
    sqlType: 'date',
    values: ['2023-12-31', '2024-01-01', '2024-06-01', '2025-01-01'],
    placement: {
      kind: 'range',
      entries: [
        { end: '2024-01-01', shard: 0 },
        { start: '2024-01-01', end: '2025-01-01', shard: 1 },
        { start: '2025-01-01', shard: 2 },
      ],
      fallback: 3,
    },
    bare: false,
  },
  {
    name: 'list beside ranges',
    keyType: 'integer',
    sqlType: 'integer',
    values: numbers,
    placement: {
      kind: 'list',
      entries: [{ values: ['1', '8', null], shard: 3 }],
      ranges: [
        { end: '3', shard: 0 },
        { start: '3', end: '20', shard: 1 },
      ],
      fallback: 2,
    },
    bare: true,
  },
]

/** A condition with its parameters as text. */
interface Condition {
  readonly text: string
  readonly isExact: boolean
}

class Writer {
  readonly parameters: string[] = []
  readonly #random: () => number
  readonly #one: Case

  constructor(random: () => number, one: Case) {
    this.#random = random
    this.#one = one
  }

  pick<T>(from: readonly T[]): T {
    return from[Math.floor(this.#random() * from.length)]!
  }

  /** A value of the key in one of the forms in which SQL can write it. */
  value(): string {
    const { sqlType, values, bare } = this.#one
    const value = this.pick(values)
    const quoted = `'${value.replaceAll("'", "''")}'`
    const forms = [
      quoted,
      `${quoted}::${sqlType}`,
      `cast(${quoted} as ${sqlType})`,
      `${sqlType} ${quoted}`,
    ]
    if (bare) forms.push(value, `${value}`, `(select ${value})`)
    forms.push('$', '$', `$::${sqlType}`, `(select ${quoted}::${sqlType})`)
    const form = this.pick(forms)
    if (!form.startsWith('$')) return form
    this.parameters.push(value)
    return `$${this.parameters.length}${form.slice(1)}`
  }

  #array(): string {
    const { sqlType, values } = this.#one
    const some = Array.from({ length: 3 }, () => this.pick(values))
    const text = `{${some.map((value) => `"${value.replaceAll('"', '\\"')}"`).join(',')},NULL}`
    const quoted = `'${text.replaceAll("'", "''")}'`
    if (this.#random() < 0.5) return this.pick([quoted, `${quoted}::${sqlType}[]`])
    this.parameters.push(text)
    return `$${this.parameters.length}::${sqlType}[]`
  }

  #order(): string {
    return this.pick(['<', '<=', '>', '>='])
  }

  leaf(): Condition {
    const kinds: readonly (() => Condition)[] = [
      () => ({ text: `k = ${this.value()}`, isExact: true }),
      () => ({ text: `${this.value()} = t.k`, isExact: true }),
      () => ({ text: `k in (${this.value()}, ${this.value()}, null)`, isExact: true }),
      () => ({ text: `k = any (${this.#array()})`, isExact: true }),
      () => ({ text: `k = any (array[${this.value()}, ${this.value()}])`, isExact: true }),
      () => ({ text: `k in (values (${this.value()}), (${this.value()}))`, isExact: false }),
      () => ({ text: `k is not distinct from ${this.value()}`, isExact: true }),
      () => ({ text: 'k is null', isExact: true }),
      () => ({ text: `(k, n) = (${this.value()}, ${this.pick([1, 2, 3])})`, isExact: false }),
      () => ({ text: `(n, k) in ((1, ${this.value()}), (2, ${this.value()}))`, isExact: false }),
      () => ({ text: `(k, n) ${this.#order()} (${this.value()}, 2)`, isExact: false }),
      () => ({ text: `k ${this.#order()} ${this.value()}`, isExact: false }),
      () => ({ text: `${this.value()} ${this.#order()} k`, isExact: false }),
      () => ({ text: `k between ${this.value()} and ${this.value()}`, isExact: false }),
      () => ({ text: `k <> ${this.value()}`, isExact: false }),
      () => ({ text: `n = ${this.pick([1, 2, 3])}`, isExact: false }),
      () => ({ text: this.pick(['true', 'false', 'null']), isExact: false }),
    ]
    return this.pick(kinds)()
  }

  condition(depth: number): Condition {
    const roll = this.#random()
    if (depth === 0 || roll < 0.35) return this.leaf()
    const left = this.condition(depth - 1)
    if (roll < 0.42) return { text: `not (${left.text})`, isExact: false }
    if (roll < 0.48) return { text: `(${left.text}) is true`, isExact: false }
    const right = this.condition(depth - 1)
    return { text: `(${left.text} ${roll < 0.75 ? 'and' : 'or'} ${right.text})`, isExact: false }
  }
}

function bound(values: readonly string[], one: Case, binary: boolean): BoundParameters {
  // Arrays are written by text here.
  const formats = values.map((value) => (binary && !value.startsWith('{') ? 1 : 0))
  const parts = values.map((value, i) =>
    formats[i] === 1 ? binaryOf(one.keyType, value) : Buffer.from(value),
  )
  const ends: number[] = []
  for (const part of parts) ends.push((ends.at(-1) ?? 0) + part.length)
  return {
    count: parts.length,
    buffer: Buffer.concat(parts),
    isNull: () => false,
    format: (index) => formats[index] as 0 | 1,
    start: (index) => ends[index - 1] ?? 0,
    end: (index) => ends[index]!,
  }
}

interface Figures {
  asked: number
  needed: number
  unread: number
}

/** One condition, asked of PostgreSQL and of the router, with its parameters in both formats. */
async function check(
  one: Case,
  client: pg.Client,
  planner: QueryPlanner,
  asked: { writer: Writer; condition: Condition },
  figures: Figures,
): Promise<void> {
  const { parameters } = asked.writer
  const { text } = asked.condition
  const found = await client
    .query<{ shard: number }>(`select distinct shard from t where ${text}`, parameters)
    // What the server refuses needs no route.
    .catch(() => undefined)
  if (!found) return void figures.unread++
  const needed = found.rows.map(({ shard }) => shard).sort((a, b) => a - b)
  // A subquery is gathered from wherever its tables are.
  const isExact = asked.condition.isExact && !text.includes('(select')
  for (const binary of [false, true]) {
    const plan: Plan = planner
      .plan(`select shard from t where ${text}`)
      .statements[0]!.route(bound(parameters, one, binary), { searchPath: [] })
    const says = `${text} with ${JSON.stringify(parameters)} ${plan.error?.message ?? ''}`
    expect(plan.how, says).not.toBe('refuse')
    const chosen = listShards(plan.target, SHARDS)
    for (const shard of needed) expect(chosen, says).toContain(shard)
    if (isExact) expect(chosen, says).toEqual(needed)
    figures.asked += chosen.length
    figures.needed += needed.length
  }
}

describe('the shards of a condition hold every row that PostgreSQL finds', () => {
  const postgres = usePostgres({ version: 15 })
  let client: pg.Client
  beforeAll(async () => {
    const { port } = postgres().servers[0]!
    client = new pg.Client({ host: '127.0.0.1', port, user: 'postgres', database: 'postgres' })
    await client.connect()
  })
  afterAll(() => client?.end())

  it.each(cases)('D62, D63, D64, D66, D117: $name', async (one) => {
    const table: ShardedTable = {
      name: 't',
      column: 'k',
      keyType: one.keyType,
      placement: one.placement,
    }
    const placer = makeKeyPlacer(table)
    await client.query('drop table if exists t')
    await client.query(`create temp table t (k ${one.sqlType}, n int, shard int)`)
    for (const [i, value] of [...one.values, ...one.values, null].entries()) {
      const shard = value === null ? placer.ofNull() : placer.ofString(value)
      await client.query('insert into t values ($1, $2, $3)', [value, (i % 3) + 1, shard])
    }
    const planner: QueryPlanner = await openQueryPlanner({
      sharding: {
        shardCount: SHARDS,
        tables: [table],
        referenceTables: [],
        schemas: [],
        otherTables: 'reference',
      },
    })
    const random = makeRandom(20261130)
    const figures = { asked: 0, needed: 0, unread: 0 }
    for (let round = 0; round < CONDITIONS; round++) {
      const writer = new Writer(random, one)
      const condition = round < 60 ? writer.leaf() : writer.condition(3)
      await check(one, client, planner, { writer, condition }, figures)
    }
    expect(figures.unread).toBeLessThan(CONDITIONS / 5)
    console.log(`${one.name}: ${figures.asked} shards asked, ${figures.needed} needed`)
  })
})
