/** `pg_dump --data-only` of a schema with ten tables, piped through `copy-shard` into four shards: every row, once, in its place. */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../support/run-cli.js'
import { usePostgres } from '../support/use-postgres.js'

const SHARDS = 4
const PG_DUMP = '/usr/lib/postgresql/15/bin/pg_dump'
const names = Array.from({ length: 8 }, (_, n) => `t${n}`)

const schema = `
${names.map((name, n) => `create table ${name} (id bigserial, tenant bigint, "Odd ""name""" text, v text default 'x${n}');`).join('\n')}
create table "Mixed Case" (tenant bigint, v bytea);
create table country (code text primary key, name text);`

const rows = `
${names.map((name, n) => `insert into ${name} (tenant, "Odd ""name""", v) select g % 97, E'tab\\t back\\\\slash \\\\. nl\\n' || g, nullif('v' || g % 5, 'v0') from generate_series(1, ${200 * (n + 1)}) g;`).join('\n')}
insert into "Mixed Case" select g, decode(md5(g::text), 'hex') from generate_series(1, 300) g;
insert into country values ('de', 'Germany'), ('fr', 'France');`

describe.skipIf(!existsSync(PG_DUMP))('a pg_dump file', () => {
  const postgres = usePostgres({ version: 15 })
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-dump-'))
  const path = (name: string) => join(directory, name)
  const databases: string[] = []
  const ask = async (database: string, sql: string) => {
    const client = await postgres().connect(0, database)
    const { rows: found } = await client.query<Record<string, string>>(sql)
    await client.end()
    return found
  }

  beforeAll(async () => {
    await postgres().query(schema)
    await postgres().query(rows)
    for (let shard = 0; shard < SHARDS; shard++) {
      databases.push(await postgres().createDatabase())
      await ask(databases[shard]!, schema)
    }
    const { host, port } = postgres().servers[0]!
    const lines = databases.map(
      (database, shard) =>
        `[[databases]]\nname = "app"\nhost = "${host}"\nport = ${port}\ndatabase_name = "${database}"\nuser = "postgres"\nshard = ${shard}\n`,
    )
    const tables =
      '[[sharded_tables]]\ndatabase = "app"\ncolumn = "tenant"\ndata_type = "bigint"\n[[omnisharded_tables]]\ndatabase = "app"\ntables = ["country"]\n'
    writeFileSync(path('pgdog.toml'), lines.join('') + tables)
    writeFileSync(path('users.toml'), '[[users]]\nname = "app"\ndatabase = "app"\npassword = "x"\n')
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  it('is spread over the shards', async () => {
    const dump = spawnSync(PG_DUMP, ['--data-only', '-d', postgres().url()], {
      maxBuffer: 1 << 28,
    })
    expect(dump.status, dump.stderr.toString()).toBe(0)
    const { code, stdout, stderr } = await runCli(
      ['copy-shard', '-', '--format', 'pg_dump', '--config', path('pgdog.toml'), '--json'],
      { input: dump.stdout },
    )
    expect(code, stderr).toBe(0)
    const total = 200 * 36 + 300 + 2
    expect(JSON.parse(stdout)).toMatchObject({ read: total, written: total, rejected: 0 })
    expect(stderr).toContain('passed over 8 setval lines')
    for (const table of [...names, '"Mixed Case"']) {
      const sql = `select count(*) as n, sum(hashtextextended(t::text, 0)::numeric) as s from ${table} t`
      const [whole] = await postgres().query(sql)
      const parts = await Promise.all(databases.map((database) => ask(database, sql)))
      const sum = (of: 'n' | 's') => parts.reduce((all, [one]) => all + BigInt(one?.[of] ?? 0), 0n)
      expect([sum('n'), sum('s')], table).toEqual([
        BigInt(whole!['n'] as string),
        BigInt(whole!['s'] as string),
      ])
      expect(parts.filter(([one]) => one?.['n'] !== '0').length).toBeGreaterThan(1)
    }
    const countries = await Promise.all(
      databases.map((one) => ask(one, 'select code from country')),
    )
    expect(countries.map((found) => found.length)).toEqual([2, 2, 2, 2])
  })

  it('must be whole', async () => {
    const { code, stderr } = await runCli(
      ['copy-shard', '-', '--format', 'pg_dump', '--config', path('pgdog.toml')],
      { input: 'COPY public.t0 (id, tenant) FROM stdin;\n1\t2\n' },
    )
    expect(code, stderr).toBe(5)
    expect(stderr).toContain('it ends inside the data of a table')
    const wrong = ['--format', 'pg_dump', '--config', path('pgdog.toml'), '--header']
    expect((await runCli(['copy-shard', '-', ...wrong])).code).toBe(2)
  })
})
