/** `serve` in front of two HA groups: functions run on the group that owns them, and a switch is followed. */
import { readFileSync, writeFileSync } from 'node:fs'
import pg from 'pg'
import { beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { runCli } from '../../support/run-cli.js'
import { type Served, startServe } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

describe('serve and HA groups', () => {
  const postgres = usePostgres({ count: 1 })
  const nodes = ['ha_one_a', 'ha_one_b', 'ha_two_a', 'ha_two_b']
  let served: Served

  beforeAll(async () => {
    for (const node of nodes) {
      await postgres().query(`drop database if exists ${node}`)
      await postgres().query(`create database ${node}`)
      const client = await postgres().connect(0, node)
      await client.query(`create function where_am_i(n bigint) returns text language sql as $$ select current_database()::text $$;
        create function billing() returns text language sql as $$ select current_database()::text $$;
        create table reference (id int); insert into reference values (1)`)
      await client.end()
    }
    const { host, port } = postgres().servers[0]!
    const url = (database: string) => postgres().url(0, database)
    const group = (name: string, shard: number, primary: string, standby: string) =>
      `[[ha_groups]]\nname = "${name}"\ndatabase = "app"\nshard = ${shard}\nprimary = "${url(primary)}"\nstandby = "${url(standby)}"`
    const tables = [
      `[ha]\nstate = "${url(postgres().database)}"\npassword = "beat"`,
      group('one', 0, 'ha_one_a', 'ha_one_b'),
      group('two', 1, 'ha_two_a', 'ha_two_b'),
      '[[function_routes]]\ndatabase = "app"\nfunction = "billing"\ngroup = "two"',
      '[[function_routes]]\ndatabase = "app"\nfunction = "where_am_i"\nhash_argument = 1',
    ].join('\n\n')
    const shards = ['ha_one_a', 'ha_two_a'].map((database) => ({ host, port, database }))
    const init = `${process.env['TMPDIR'] ?? '/tmp'}/pgshard-ha-init-${process.pid}.toml`
    writeFileSync(
      init,
      `${shards.map((one, shard) => `[[databases]]\nname = "app"\nhost = "${one.host}"\nport = ${one.port}\ndatabase_name = "${one.database}"\nshard = ${shard}`).join('\n')}\n${tables}`,
    )
    const made = await runCli(['ha', 'init', '--config', init])
    expect(made.stderr).toBe('')
    served = await startServe({ shards, tables })
  })

  const first = async (sql: string, values: unknown[] = []) =>
    Object.values((await served.query(sql, values))[0] ?? {})[0]

  const route = (group: string, to: string) =>
    runCli(['ha', 'switch', group, '--to', to, '--force', '--config', served.configPath])

  /** Moves group two, and waits until serve has followed. */
  async function moveTo(to: 'primary' | 'standby'): Promise<void> {
    expect((await route('two', to)).code).toBe(0)
    const wanted = to === 'primary' ? 'ha_two_a' : 'ha_two_b'
    await waitFor(async () => (await first('select billing()')) === wanted, {
      what: `the route on the ${to}`,
      deadlineMs: 30_000,
    })
  }
  beforeEach(async () => {
    if ((await first('select billing()')) !== 'ha_two_a') await moveTo('primary')
  })

  it('X2: a function runs where it belongs, by group and by the hash of its argument', async () => {
    expect(await first('select billing()')).toBe('ha_two_a')
    expect(await first('select * from billing()')).toBe('ha_two_a')
    const places = new Set<unknown>()
    for (let key = 1; key <= 12; key++) {
      const place = await first(`select where_am_i(${key})`)
      expect(await first('select where_am_i($1)', [key])).toBe(place)
      places.add(place)
    }
    expect([...places].sort()).toEqual(['ha_one_a', 'ha_two_a'])
    await expect(served.query('select where_am_i(random()::bigint)')).rejects.toMatchObject({
      code: '0A000',
    })
  })

  it('X15, X50: a switch is followed without a restart, by open sessions too', async () => {
    const session = await served.connect()
    expect((await session.query('select billing()')).rows).toEqual([{ billing: 'ha_two_a' }])
    await moveTo('standby')
    expect((await session.query('select billing()')).rows).toEqual([{ billing: 'ha_two_b' }])
    await session.end()
    expect(served.program.stderr).toMatch(/an HA group was switched group=two route=standby/)
  })

  it('a reload does not go back to what the file says', async () => {
    await moveTo('standby')
    const admin = new pg.Client({ connectionString: served.adminUrl })
    await admin.connect()
    writeFileSync(
      served.configPath,
      readFileSync(served.configPath, 'utf8').replace(
        '[general]',
        '[general]\nlog_connections = false',
      ),
    )
    await admin.query('RELOAD')
    await admin.end()
    expect(await first('select billing()')).toBe('ha_two_b')
    await moveTo('primary')
  })
})
