/**
 * The partition hashes recorded from PostgreSQL, by the whole road of a statement: the planner over 2 to 64 shards,
 * with parameters as they are read from a Bind frame, and a running serve over four databases.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import type { BoundParameters, QueryPlanner } from '../../../src/plan/plan.js'
import { openQueryPlanner } from '../../../src/routing/query-planner.js'
import { readBatchItem } from '../../../src/session/requests/batch.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import { encodeBind } from '../../../src/wire/frontend-messages.js'
import { binaryOf } from '../../support/key-binary.js'
import { projectRoot } from '../../support/run-cli.js'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'

interface Vector {
  readonly type: (typeof types)[number]
  readonly key: string
  readonly shard_of: Record<string, number>
}

const types = [
  'bigint',
  'integer',
  'smallint',
  'uuid',
  'text',
  'varchar',
  'bpchar',
  'numeric',
  'date',
  'timestamptz',
] as const

const vectors = readFileSync(join(projectRoot, 'fixtures/hash/pg-partition-hash.jsonl'), 'utf8')
  .trim()
  .split('\n')
  .map((line) => JSON.parse(line) as Vector)

const isNumber = ({ type }: Vector): boolean => /int|numeric/.test(type)
const quoted = ({ key }: Vector): string => `'${key.replaceAll("'", "''")}'`
const literal = (vector: Vector): string => (isNumber(vector) ? vector.key : quoted(vector))

/** The parameters of a statement, as the session reads them from the client's bytes. */
function bound(values: readonly Buffer[], formats: readonly number[]): BoundParameters {
  const writer = new FrameWriter()
  encodeBind(writer, { portal: '', statement: 's', formats, values, resultFormats: [] })
  const item = readBatchItem(writer.take())
  if (item.kind !== 'bind') throw new Error('not a Bind')
  return item.parameters
}

const asText = (key: string) => bound([Buffer.from('before the key'), Buffer.from(key)], [])
const asBinary = ({ type, key }: Vector) =>
  bound([Buffer.from('before the key'), binaryOf(type, key)], [0, 1])

/** The only shard of a plan, or what else it says. */
function shardOf(
  planner: QueryPlanner,
  sql: string,
  parameters?: BoundParameters,
): number | string {
  const [statement] = planner.plan(sql).statements
  if (!statement) return 'no statement'
  const plan = statement.route(parameters, { searchPath: ['public'] })
  if (plan.how !== 'relay' || plan.target.kind !== 'some' || plan.target.shards.length !== 1)
    return JSON.stringify(plan)
  return plan.target.shards[0] as number
}

it('has all recorded vectors', () => {
  expect(vectors).toHaveLength(534)
  expect(new Set(vectors.map((vector) => vector.type))).toEqual(new Set(types))
})

describe('recorded hashes through the planner', () => {
  it.each([2, 3, 4, 5, 7, 8, 16, 64])('land on the right one of %d shards', async (shards) => {
    const planner = await openQueryPlanner({
      sharding: {
        shardCount: shards,
        tables: types.map((type) => ({
          name: `v_${type}`,
          column: 'k',
          keyType: type,
          placement: {
            kind: 'hash',
            hasher: 'postgres',
            buckets: shards,
            bucketMap: Array.from({ length: shards }, (_, bucket) => bucket),
          },
        })),
        referenceTables: [],
        schemas: [],
        otherTables: { shard: 0 },
      },
    })
    const wrong: unknown[] = []
    const check = (vector: Vector, way: string, got: number | string) => {
      const wanted = vector.shard_of[shards]
      if (got !== wanted) wrong.push({ type: vector.type, key: vector.key, way, wanted, got })
    }
    for (const vector of vectors) {
      const table = `v_${vector.type}`
      const insert = `INSERT INTO ${table} (note, k) VALUES`
      const select = `SELECT note FROM ${table} WHERE note <> $1 AND k = $2`
      const none = `SELECT note FROM ${table} WHERE k =`
      check(vector, 'insert literal', shardOf(planner, `${insert} ('', ${literal(vector)})`))
      check(vector, 'insert quoted', shardOf(planner, `${insert} ('', ${quoted(vector)})`))
      check(vector, 'select literal', shardOf(planner, `${none} ${literal(vector)}`))
      for (const sql of [`${insert} ($1, $2)`, select]) {
        check(vector, `text in ${sql}`, shardOf(planner, sql, asText(vector.key)))
        check(vector, `binary in ${sql}`, shardOf(planner, sql, asBinary(vector)))
      }
    }
    expect(wrong).toEqual([])
  })
})

describe('recorded hashes through serve over four databases', () => {
  const postgres = usePostgres({ version: 15 })
  const shards = 4
  const databases: string[] = []
  let served: Served

  beforeAll(async () => {
    const server = postgres().servers[0]!
    for (let shard = 0; shard < shards; shard++) {
      const name = await postgres().createDatabase()
      databases.push(name)
      const client = await postgres().connect(0, name)
      for (const type of types)
        await client.query(`CREATE TABLE v_${type} (id int, way text, k ${type})`)
      await client.end()
    }
    served = await startServe({
      shards: databases.map((database) => ({ host: server.host, port: server.port, database })),
      tables: types
        .map(
          (type) =>
            `[[sharded_tables]]\ndatabase = "app"\nname = "v_${type}"\ncolumn = "k"\ndata_type = "${type}"`,
        )
        .join('\n'),
    })
  })

  const ways = ['literal', 'text', 'binary'] as const

  const insert = async (client: pg.Client, vector: Vector, id: number) => {
    const into = `INSERT INTO v_${vector.type} (id, way, k) VALUES`
    await client.query(`${into} (${id}, 'literal', ${literal(vector)})`)
    const prepared = { name: `i_${vector.type}`, text: `${into} ($1, $2, $3)` }
    await client.query({ ...prepared, values: [id, 'text', vector.key] })
    // node-postgres sends a Buffer in binary format
    const value = binaryOf(vector.type, vector.key)
    await client.query({ ...prepared, values: [id, 'binary', value] })
  }

  /** `type id way` of every row → the shards that hold it. */
  const placesOfAll = async (): Promise<Record<string, number[]>> => {
    const found: Record<string, number[]> = {}
    const union = types.map((type) => `SELECT '${type} ' || id || ' ' || way FROM v_${type}`)
    for (const [shard, database] of databases.entries()) {
      const direct = await postgres().connect(0, database)
      const { rows } = await direct.query({ text: union.join(' UNION ALL '), rowMode: 'array' })
      for (const [name] of rows as [string][]) found[name] = [...(found[name] ?? []), shard]
      await direct.end()
    }
    return found
  }

  it('writes every row where its hash belongs, and finds it there again', async () => {
    const client = await served.connect()
    for (const [id, vector] of vectors.entries()) await insert(client, vector, id)
    const wanted = vectors.flatMap(({ type, shard_of }, id) =>
      ways.map((way) => [`${type} ${id} ${way}`, [shard_of['4']]] as const),
    )
    expect(await placesOfAll()).toEqual(Object.fromEntries(wanted))

    const missed: unknown[] = []
    for (const [id, vector] of vectors.entries()) {
      const text = `SELECT way FROM v_${vector.type} WHERE id = $1 AND k = $2`
      for (const key of [vector.key, binaryOf(vector.type, vector.key)]) {
        const { rows } = await client.query({ name: vector.type, text, values: [id, key] })
        if (rows.length !== ways.length) missed.push({ ...vector, key })
      }
    }
    expect(missed).toEqual([])
    await client.end()
  })
})
