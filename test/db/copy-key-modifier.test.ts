/** Keys that the server rounds or cuts when it stores them: copy-shard puts each row where its stored key belongs. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../support/run-cli.js'
import { usePostgres } from '../support/use-postgres.js'

const SHARDS = 3

describe('copy-shard of keys with a type modifier', () => {
  const postgres = usePostgres({ version: 15 })
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-modifier-'))
  const databases: string[] = []

  beforeAll(async () => {
    for (let shard = 0; shard < SHARDS; shard++) databases.push(await postgres().createDatabase())
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it.each([
    ['numeric(6,1)', ['1.25', '2.24', '3.05', '7', '1e1', '-0.04']],
    ['varchar(3)', ['abc   ', 'a', 'ab ', 'x  ', 'xyz']],
    ['timestamp(0)', ['2024-01-01 00:00:00.6', '2024-02-29 12:00:00.4', '1999-12-31 23:59:59.9']],
    ['char(4)', ['a', 'a   ', 'bcd', 'bcde']],
  ])('%s', async (type, keys) => {
    for (const database of databases) {
      const client = await postgres().connect(0, database)
      await client.query(`drop table if exists kept; create table kept (k ${type}, n int)`)
      await client.end()
    }
    const file = join(directory, 'rows.csv')
    writeFileSync(file, keys.map((key, n) => `"${key}",${n}\n`).join(''))
    const targets = databases.flatMap((database) => ['--target', postgres().url(0, database)])
    const done = await runCli([
      'copy-shard',
      file,
      '--table',
      'kept',
      '--sharding-key',
      'k',
      '--quiet',
      ...targets,
    ])
    expect(done.code, done.stderr).toBe(0)
    let rows = 0
    for (const [shard, database] of databases.entries()) {
      const client = await postgres().connect(0, database)
      await client.query(
        `create table if not exists homes_${shard} (k ${type}) partition by hash (k)`,
      )
      const { rows: found } = await client.query(
        `select n, satisfies_hash_partition('homes_${shard}'::regclass, ${SHARDS}, ${shard}, k) as home from kept`,
      )
      expect(found.filter((row) => !row.home)).toEqual([])
      rows += found.length
      await client.query(`drop table homes_${shard}`)
      await client.end()
    }
    expect(rows).toBe(keys.length)
  })

  it('refuses a column that is hashed otherwise than --key-type says', async () => {
    for (const database of databases) {
      const client = await postgres().connect(0, database)
      await client.query('drop table if exists kept; create table kept (k text, n int)')
      await client.end()
    }
    const file = join(directory, 'rows.csv')
    writeFileSync(file, '1,1\n')
    const targets = databases.flatMap((database) => ['--target', postgres().url(0, database)])
    const flags = ['--sharding-key', 'k', '--key-type', 'bigint', '--quiet']
    const done = await runCli(['copy-shard', file, '--table', 'kept', ...flags, ...targets])
    expect(done.code).toBe(3)
    expect(done.stderr).toContain('column "k" of type text, not bigint cannot be a sharding key')
  })
})
