/** COPY TO STDOUT of a sharded table through serve: one header, one signature, one trailer, every row once, loadable again. */
import pg from 'pg'
import { from as copyFrom, to as copyTo } from 'pg-copy-streams'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { usePostgres } from '../../support/use-postgres.js'
import { SHARDS, useShardedRig } from './sharded-rig.js'

describe('COPY TO of a sharded table', () => {
  const postgres = usePostgres({ version: 15 })
  const rig = useShardedRig()
  let client: pg.Client

  beforeAll(async () => {
    for (let shard = 0; shard < SHARDS; shard++)
      for (let nth = 0; nth < 20; nth++)
        await rig().onShard(shard, 'insert into item values ($1, 1, $2)', [
          rig().key(shard, nth),
          `v "${nth}"\n`,
        ])
    client = await rig().served.connect()
  })
  afterAll(() => client.end())

  async function read(sql: string): Promise<Buffer> {
    const pieces: Buffer[] = []
    for await (const piece of client.query(copyTo(sql)) as AsyncIterable<Buffer>) pieces.push(piece)
    return Buffer.concat(pieces)
  }

  it.each(['text', 'csv'])('has one header in %s', async (format) => {
    const data = await read(`copy item (k, id) to stdout (format ${format}, header)`)
    const lines = data.toString().trimEnd().split('\n')
    const header = format === 'csv' ? 'k,id' : 'k\tid'
    expect(lines.filter((line) => line === header)).toHaveLength(1)
    expect(lines[0]).toBe(header)
    expect(lines).toHaveLength(1 + SHARDS * 20)
  })

  it.each([
    ['text', 'text'],
    ['csv', 'csv, header'],
    ['binary', 'binary'],
  ])('is loaded again by PostgreSQL in %s', async (_, options) => {
    const data = await read(`copy item to stdout (format ${options})`)
    await rig().onShard(0, 'create table again (like item)')
    const direct = new pg.Client({
      connectionString: postgres().url(0, rig().databases[0]),
    })
    await direct.connect()
    try {
      await new Promise<void>((resolve, reject) => {
        const stream = direct.query(copyFrom(`copy again from stdin (format ${options})`))
        stream.on('error', reject)
        stream.on('finish', () => resolve())
        stream.end(data)
      })
      const [row] = await rig().onShard(
        0,
        'select count(*)::int as n, count(distinct k)::int as d from again',
      )
      expect(row).toEqual({ n: SHARDS * 20, d: SHARDS * 20 })
    } finally {
      await direct.end()
      await rig().onShard(0, 'drop table again')
    }
  })

  it('is whole when no shard has a row', async () => {
    const binary = await read('copy late to stdout (format binary)')
    expect(binary.length).toBe(21)
    expect((await read('copy late to stdout (format csv, header)')).toString()).toBe('k,n\n')
  })

  it('takes a query whose answers can be put behind each other', async () => {
    const data = await read('copy (select k from item where id = 1) to stdout (format csv, header)')
    expect(data.toString().split('\n').slice(1, -1)).toHaveLength(SHARDS * 20)
    const binary = await read('copy (select k from item) to stdout (format binary)')
    expect(binary.length).toBe(19 + SHARDS * 20 * (2 + 4 + 8) + 2)
    const ordered = (await read('copy (select k from item order by k desc) to stdout')).toString()
    const keys = ordered.trimEnd().split('\n').map(Number)
    expect(keys).toHaveLength(SHARDS * 20)
    expect(keys).toEqual([...keys].sort((a, b) => b - a))
  })

  it('leaves the connection usable, also after a fault on one shard', async () => {
    const bad = read('copy (select 1 / (k - k + id - 1) from item) to stdout (format binary)')
    await expect(bad).rejects.toMatchObject({ code: '22012' })
    expect((await read('copy item to stdout')).toString().trimEnd().split('\n')).toHaveLength(
      SHARDS * 20,
    )
  })
})
