/** EXPLAIN of statements that several shards work for: every shard's plan, and what happens behind them. */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { startServe } from '../../support/serve.js'
import { WireClient } from '../../support/wire-client.js'
import { failure, SHARDS, useShardedRig } from './sharded-rig.js'

describe('EXPLAIN over shards', () => {
  const rig = useShardedRig()
  const plan = async (sql: string, values: unknown[] = []) =>
    (await rig().served.query(sql, values)).map((row) => String(row['QUERY PLAN']))

  it('of a concatenation and of a merge has the plan of each shard', async () => {
    const lines = await plan('explain (costs off) select id from item')
    expect(lines[0]).toMatch(/^pgshard concatenate: /)
    expect(lines.filter((line) => /^ {2}-> {2}Shard \d$/.test(line))).toHaveLength(SHARDS)
    expect(lines.filter((line) => line.includes('Seq Scan on item'))).toHaveLength(SHARDS)
    const merged = await plan('explain (costs off) select id from item order by id limit 3')
    expect(merged.slice(0, 3)).toEqual([
      expect.stringMatching(/^pgshard merge: /),
      '  Merge Key: column 1',
      '  Limit: 3',
    ])
    expect(merged.filter((line) => line.includes('Sort Key: id'))).toHaveLength(SHARDS)
  })

  it('of a gathering shows what is read and what finishes', async () => {
    const lines = await plan(
      'explain (costs off) select count(distinct a.v) from item a join item b on a.id = b.id',
    )
    expect(lines[0]).toMatch(/^pgshard gather: /)
    expect(lines[1]).toMatch(/^ {2}Finish: select count\(distinct a\.v\)/)
    expect(lines.filter((line) => line.includes('rows of public.item'))).toHaveLength(SHARDS)
  })

  it('of one shard is that shard’s own, by literal and by parameter', async () => {
    const key = rig().key(1)
    expect((await plan(`explain (costs off) select * from item where k = ${key}`)).join()).toMatch(
      /^(?:Index|Bitmap|Seq)/,
    )
    expect((await plan('explain select * from item where k = $1', [key])).join()).toMatch(
      /^(?:Index|Bitmap|Seq)/,
    )
    const both = await plan('explain (costs off) select * from item where k in ($1, $2)', [
      rig().key(0),
      rig().key(2),
    ])
    expect(both.filter((line) => line.includes('->  Shard'))).toEqual([
      '  ->  Shard 0',
      '  ->  Shard 2',
    ])
  })

  it('FORMAT JSON is one document; other forms are refused by name', async () => {
    const client = await WireClient.open(rig().served)
    const [[text]] = (await client.rows('explain (format json) select id from item')) as [[string]]
    const [{ Plan: root }] = JSON.parse(text) as [{ Plan: Record<string, unknown> }]
    expect(root['Node Type']).toBe('pgshard concatenate')
    expect(root['Shards']).toHaveLength(SHARDS)
    expect((root['Shards'] as object[])[2]).toMatchObject({
      Shard: 2,
      Plan: { 'Node Type': 'Seq Scan' },
    })
    await client.end()
    expect(await failure(rig().served.query('explain (format xml) select id from item'))).toContain(
      '0A000 EXPLAIN (FORMAT XML)',
    )
  })

  it('ANALYZE runs reads, and no write', async () => {
    const lines = await plan(
      'explain (analyze, costs off, timing off, summary off) select id from item',
    )
    expect(lines.filter((line) => line.includes('actual rows='))).toHaveLength(SHARDS)
    expect(await failure(rig().served.query('explain analyze update item set v = v'))).toContain(
      '0A000 EXPLAIN ANALYZE of a write',
    )
    const write = await plan('explain (costs off) update item set v = v')
    expect(write.filter((line) => line.includes('Update on item'))).toHaveLength(SHARDS)
  })

  it('expanded_explain says the route of one shard too', async () => {
    const { served, databases } = rig()
    const port = Number(
      /^port = (\d+)$/m.exec(
        readFileSync(served.configPath, 'utf8').split('[[databases]]')[1]!,
      )![1],
    )
    const shards = databases.map((database) => ({ host: '127.0.0.1', port, database }))
    const tables = '[[sharded_tables]]\ndatabase = "app"\nname = "item"\ncolumn = "k"'
    const expanded = await startServe({ shards, tables, general: ['expanded_explain = true'] })
    const sql = `explain (costs off) select * from item where k = ${rig().key(1)}`
    const rows = await expanded.query(sql)
    expect(rows.map((row) => row['QUERY PLAN']).slice(0, 2)).toEqual([
      'pgshard relay: the sharding key names one shard',
      '  ->  Shard 1',
    ])
  })
})
