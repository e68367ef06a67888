/** Every recorded case of fixtures/copy: split over 2, 3 and 5 tables in several chunkings, and united again. */
import { readdirSync, readFileSync } from 'node:fs'
import type pg from 'pg'
import { from as copyFrom } from 'pg-copy-streams'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { makeCopyOptions } from '../../src/copy/copy-options.js'
import { makeRowRouter } from '../../src/copy/row-router.js'
import { makeKeyPlacer } from '../../src/sharding/key-placer.js'
import { usePostgres } from '../support/use-postgres.js'

interface RecordedCase {
  id: string
  create: string
  copy: string
  data_file: string
  rows?: (string | null)[][]
  error?: { code: string; message: string; where: string }
  shard_by_pg_hash?: Record<string, number[]>
}

/** Options as the statements of the cases write them. */
const optionsOf: Record<string, Record<string, string>> = {
  'C03-crlf-file': { format: 'csv', header: 'true' },
  'C09-semicolon-header': { format: 'csv', header: 'true', delimiter: ';' },
  'C10-newline-in-header': { format: 'csv', header: 'true' },
  'C15b-text-custom-delim-null': { delimiter: '|', null: '' },
  'C16-null-word': { format: 'csv', null: 'NULL' },
  'C27b-quoted-identifiers': { format: 'csv', header: '1' },
}

const folders = ['fixtures/copy/csv', 'fixtures/copy/binary']
const cases = folders.flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => ({
      folder,
      ...(JSON.parse(readFileSync(`${folder}/${name}`, 'utf8')) as RecordedCase),
    })),
)

const defaultOptions = (one: RecordedCase) =>
  one.copy.includes('binary')
    ? { format: 'binary' }
    : one.copy.includes('csv')
      ? { format: 'csv' }
      : {}

describe('recorded cases', () => {
  const postgres = usePostgres({ version: 15 })
  let client: pg.Client
  beforeAll(async () => {
    client = await postgres().connect()
  })
  afterAll(() => client.end())

  const send = (sql: string, parts: Buffer[]) =>
    new Promise<void>((resolve, reject) => {
      const stream = client.query(copyFrom(sql))
      stream.on('error', reject)
      stream.on('finish', () => resolve())
      stream.end(Buffer.concat(parts))
    })

  function split(one: RecordedCase, data: Buffer, shardCount: number, chunkBytes: number) {
    const isQuoted = one.create.includes('My Schema')
    const columns = isQuoted
      ? ['a "q"', 'Id']
      : one.create.includes('uuid')
        ? ['id', 'a']
        : ['id', 'a', 'b']
    const parts = Array.from({ length: shardCount }, (): Buffer[] => [])
    const router = makeRowRouter({
      options: makeCopyOptions(optionsOf[one.id] ?? defaultOptions(one)),
      layout: { table: 't', columns, keyIndex: isQuoted ? 1 : 0 },
      shardCount,
      placer: makeKeyPlacer({
        column: 'id',
        keyType: one.create.includes('uuid') ? 'uuid' : 'bigint',
        placement: {
          kind: 'hash',
          hasher: 'postgres',
          buckets: shardCount,
          bucketMap: Array.from({ length: shardCount }, (_, shard) => shard),
        },
      }),
      onBatch: (shard, bytes) => parts[shard]!.push(bytes),
    })
    for (let at = 0; at < data.length; at += chunkBytes)
      router.push(data.subarray(at, at + chunkBytes))
    router.finish()
    return parts
  }

  async function loadShard(one: RecordedCase, parts: Buffer[]) {
    const table = one.create.includes('My Schema') ? '"My Schema"."T.x"' : 't'
    const order = table === 't' ? '*' : '"Id", "a ""q"""'
    await client.query(`begin; drop table if exists t; ${one.create}`)
    await send(one.copy, parts)
    const { rows } = await client.query({ text: `select ${order} from ${table}`, rowMode: 'array' })
    await client.query('rollback')
    return (rows as unknown[][]).map((row) =>
      row.map((value) => (value === null ? null : String(value))),
    )
  }

  function expectFailure(one: RecordedCase, data: Buffer, shardCount: number, chunkBytes: number) {
    const { code, message, where } = one.error!
    expect(() => split(one, data, shardCount, chunkBytes)).toThrowError(
      expect.objectContaining({ sqlstate: code, message, where }),
    )
  }

  async function expectRows(one: RecordedCase, data: Buffer, shardCount: number, chunk: number) {
    const loaded = []
    for (const parts of split(one, data, shardCount, chunk))
      loaded.push(await loadShard(one, parts))
    const homes = one.shard_by_pg_hash?.[shardCount]
    if (homes === undefined) return expect(loaded.flat()).toEqual(one.rows)
    const wanted = loaded.map((_, shard) => one.rows!.filter((_, row) => homes[row] === shard))
    return expect(loaded).toEqual(wanted)
  }

  it.each(cases)('$id', async (one) => {
    const data = readFileSync(`${one.folder}/${one.data_file}`)
    for (const shardCount of [2, 3, 5]) {
      for (const chunkBytes of [data.length, 1, 7, 65_536]) {
        if (one.error !== undefined) expectFailure(one, data, shardCount, chunkBytes)
        else await expectRows(one, data, shardCount, chunkBytes)
      }
    }
  })
})
