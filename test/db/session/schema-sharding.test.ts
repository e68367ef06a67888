/** A schema a shard: named in the statement, or by the session's search_path. */
import { beforeAll, describe, expect, it } from 'vitest'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { WireClient } from '../../support/wire-client.js'

const SCHEMAS = ['customer_a', 'customer_b'] as const

describe('schemas on shards', () => {
  const postgres = usePostgres({ version: 15, count: 2 })
  let served: Served

  beforeAll(async () => {
    const { servers, database } = postgres()
    // every shard has both, so that only the routing decides
    for (const shard of [0, 1])
      for (const schema of SCHEMAS) {
        await postgres().query(`create schema ${schema}`, [], shard)
        await postgres().query(`create table ${schema}.t (n int)`, [], shard)
      }
    served = await startServe({
      shards: servers.map(({ host, port }) => ({ host, port, database })),
      tables: SCHEMAS.map(
        (name, shard) =>
          `[[sharded_schemas]]\ndatabase = "app"\nname = "${name}"\nshard = ${shard}`,
      ).join('\n'),
    })
  })

  const rowsOn = async (shard: number, schema: string) =>
    (await postgres().query(`select n from ${schema}.t order by n`, [], shard)).map(({ n }) => n)

  it('D106: a name with its schema goes to that schema’s shard', async () => {
    const client = await WireClient.open(served)
    await client.rows('insert into customer_a.t values (1)')
    await client.rows('insert into customer_b.t values (2)')
    expect(await client.rows('select n from customer_b.t')).toEqual([['2']])
    expect([await rowsOn(0, 'customer_a'), await rowsOn(1, 'customer_a')]).toEqual([[1], []])
    expect([await rowsOn(0, 'customer_b'), await rowsOn(1, 'customer_b')]).toEqual([[], [2]])
    await client.end()
  })

  it('D27, D112: a name without one follows search_path, also within a transaction', async () => {
    const client = await WireClient.open(served)
    await client.rows('set search_path = customer_b')
    await client.rows('insert into t values (12)')
    expect(await client.rows('select n from t where n = 12')).toEqual([['12']])
    await client.rows('set search_path = customer_a, public')
    await client.rows('insert into t values (11)')
    expect(await client.rows('select n from t where n = 11')).toEqual([['11']])
    await client.rows('begin')
    await client.rows('set local search_path = customer_b')
    await client.rows('insert into t values (22)')
    await client.rows('commit')
    await client.rows('insert into t values (21)')
    const other = await WireClient.open({ ...served, parameters: { search_path: 'customer_b' } })
    await other.rows('insert into t values (32)')
    for (const [shard, schema] of SCHEMAS.entries()) {
      expect((await rowsOn(shard, schema)).filter((n) => Number(n) > 9)).toEqual(
        shard === 0 ? [11, 21] : [12, 22, 32],
      )
      expect((await rowsOn(1 - shard, schema)).filter((n) => Number(n) > 9)).toEqual([])
    }
    await client.end()
    await other.end()
  })
})
