import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { expectNothingLeft } from '../support/leak-check.js'
import { startPostgres, type TestPostgres } from '../support/postgres.js'
import { usePostgres } from '../support/use-postgres.js'

describe('shared servers', () => {
  const first = usePostgres({ count: 2 })
  let second: TestPostgres
  beforeAll(async () => {
    second = await startPostgres({ count: 2 })
  })
  afterAll(() => second.stop())

  test('two callers share servers and have databases of their own', async () => {
    expect(second.servers).toEqual(first().servers)
    expect(second.database).not.toBe(first().database)
    await first().query('CREATE TABLE mine (id int)')
    await expect(second.query('TABLE mine')).rejects.toThrow('does not exist')
  })

  test('what a test leaves in a server is found', async () => {
    const query = (sql: string) => first().query(sql)
    await expectNothingLeft(query)
    await query("SELECT pg_create_logical_replication_slot('forgotten', 'pgoutput')")
    await expect(expectNothingLeft(query, 100)).rejects.toThrow('slot forgotten')
    await query("SELECT pg_drop_replication_slot('forgotten')")
    await expectNothingLeft(query)
  })

  test('servers of one call are different servers', async () => {
    const identifier = 'SELECT system_identifier::text AS id FROM pg_control_system()'
    const [a] = await first().query(identifier, [], 0)
    const [b] = await first().query(identifier, [], 1)
    expect(a).not.toEqual(b)
  })
})

describe.each([15, 16, 17, 18] as const)('version %i', (version) => {
  const postgres = usePostgres({ version })
  test('is the version asked for, and ready for everything', async () => {
    const [row] = await postgres().query(
      `SELECT current_setting('server_version_num')::int / 10000 AS major,
              current_setting('wal_level') AS wal_level,
              current_setting('max_prepared_transactions')::int > 0 AS two_phase,
              getdatabaseencoding() AS encoding`,
    )
    expect(row).toEqual({ major: version, wal_level: 'logical', two_phase: true, encoding: 'UTF8' })
  })
})

test('own settings make own servers', async () => {
  const postgres = await startPostgres({ settings: { work_mem: '7MB' } })
  try {
    expect(await postgres.query('SHOW work_mem')).toEqual([{ work_mem: '7MB' }])
  } finally {
    await postgres.stop()
  }
})
