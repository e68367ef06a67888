/** Every recorded case of fixtures/copy through serve, in front of one server and over three shards, whole and byte by byte. */
import { readdirSync, readFileSync } from 'node:fs'
import { from as copyFrom } from 'pg-copy-streams'
import { beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../../support/run-cli.js'
import { type Served, startServe, writeServeConfig } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'

interface RecordedCase {
  id: string
  create: string
  copy: string
  data_file: string
  rows?: (string | null)[][]
  error?: { code: string; message: string; where: string }
  shard_by_pg_hash?: Record<string, number[]>
}

const SHARDS = 3
const folders = ['fixtures/copy/csv', 'fixtures/copy/binary']

/** Each case with a table of its own, so that one serve knows them all. */
const cases = folders.flatMap((folder) =>
  readdirSync(folder)
    .filter((name) => name.endsWith('.json'))
    .map((name) => {
      const one = JSON.parse(readFileSync(`${folder}/${name}`, 'utf8')) as RecordedCase
      const table = one.id.toLowerCase().replaceAll('-', '_')
      const isQuoted = one.create.includes('My Schema')
      const rename = (sql: string, verb: RegExp) =>
        isQuoted ? sql : sql.replace(verb, `$1 ${table}`)
      return {
        ...one,
        table: isQuoted ? '"My Schema"."T.x"' : table,
        key: isQuoted ? 'Id' : 'id',
        keyType: one.create.includes('uuid') ? 'uuid' : 'bigint',
        create: rename(one.create, /(create table) t\b/i),
        copy: rename(one.copy, /^(copy) t\b/i),
        data: readFileSync(`${folder}/${one.data_file}`),
      }
    }),
)

const sharding = cases
  .map((one) => {
    const [schema, name] = one.table.startsWith('"') ? ['My Schema', 'T.x'] : ['public', one.table]
    return `[[sharded_tables]]\ndatabase = "app"\nschema = "${schema}"\nname = "${name}"\ncolumn = "${one.key}"\ndata_type = "${one.keyType}"`
  })
  .join('\n')

describe('COPY FROM through serve', () => {
  const postgres = usePostgres({ version: 15, settings: { max_prepared_transactions: '64' } })
  let plain: Served
  let sharded: Served
  const databases: string[] = []

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    databases.push(postgres().database)
    for (let shard = 0; shard < SHARDS; shard++) databases.push(await postgres().createDatabase())
    for (const database of databases) {
      const client = await postgres().connect(0, database)
      for (const one of cases) await client.query(one.create)
      await client.end()
    }
    const at = (database: string) => ({ host, port, database })
    const setup = { shards: databases.slice(1).map(at), tables: sharding }
    const files = writeServeConfig(setup)
    const made = await runCli([
      'setup',
      '-c',
      files.configPath,
      '-u',
      files.usersPath,
      '--database',
      'app',
    ])
    expect(made.code, made.stderr).toBe(0)
    plain = await startServe({ shards: [at(databases[0]!)] })
    sharded = await startServe(setup)
  })

  const copy = async (served: Served, sql: string, data: Buffer, chunkBytes: number) => {
    const client = await served.connect()
    try {
      await new Promise<void>((resolve, reject) => {
        const stream = client.query(copyFrom(sql))
        stream.on('error', reject)
        stream.on('finish', () => resolve())
        for (let at = 0; at < data.length; at += chunkBytes)
          stream.write(data.subarray(at, at + chunkBytes))
        stream.end()
      })
      // the session goes on after a COPY, failed or not
      expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
      return undefined
    } catch (error) {
      expect((await client.query('select 1 as one')).rows).toEqual([{ one: 1 }])
      return error as { code: string; message: string; where?: string }
    } finally {
      await client.end()
    }
  }

  const rowsOf = async (database: string, table: string) => {
    const client = await postgres().connect(0, database)
    const { rows } = await client.query({ text: `select * from ${table}`, rowMode: 'array' })
    await client.query(`truncate ${table}`)
    await client.end()
    return (rows as unknown[][]).map((row) =>
      row.map((value) => (value === null ? null : String(value))),
    )
  }

  it.each(
    cases.flatMap((one) => [one.data.length, 1].map((bytes) => [one.id, bytes, one] as const)),
  )('%s fed %i bytes at a time', async (_id, chunkBytes, one) => {
    const direct = await copy(plain, one.copy, one.data, chunkBytes)
    const over = await copy(sharded, one.copy, one.data, chunkBytes)
    const inOne = await rowsOf(databases[0]!, one.table)
    const perShard = []
    for (const database of databases.slice(1)) perShard.push(await rowsOf(database, one.table))
    if (one.error) {
      expect(direct).toMatchObject({ code: one.error.code, message: one.error.message })
      expect(over).toMatchObject({ code: one.error.code, message: one.error.message })
      expect([inOne, ...perShard]).toEqual([[], [], [], []])
      return
    }
    expect(direct).toBeUndefined()
    expect(over).toBeUndefined()
    expect(inOne).toEqual(one.rows)
    const homes = one.shard_by_pg_hash?.[SHARDS]
    if (homes) {
      expect(perShard).toEqual(
        perShard.map((_, shard) => one.rows!.filter((_, row) => homes[row] === shard)),
      )
    } else expect(perShard.flat()).toEqual(one.rows)
  })
})
