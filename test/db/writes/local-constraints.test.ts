/** What one shard cannot see (hard-parts §4): each rule refuses by itself, is listed by setup and config check, and yields to local_constraints. */
import { beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../../support/run-cli.js'
import { startServe, writeServeConfig } from '../../support/serve.js'
import { usePostgres } from '../../support/use-postgres.js'
import { failure } from '../session/sharded-rig.js'

const schema = `
create extension if not exists btree_gist;
create table plain (k bigint, id int, primary key (k, id));
create table lonely (k bigint, code text unique);
create table expressive (k bigint, name text);
create unique index on expressive (lower(name));
create table booked (k bigint, during int4range, exclude using gist (during with &&));
create table parent (id bigserial primary key, k bigint, unique (k, id));
create table child (k bigint, parent bigint references parent (id));
create table together (k bigint, parent bigint, foreign key (k, parent) references parent (k, id));
create table serial (k bigint, id bigint generated always as identity primary key, v text);
create table token (k bigint, id uuid default gen_random_uuid() primary key);
create table accepted (k bigint, code text constraint accepted_code unique);
create table kind (code text primary key);
create table typed (k bigint, kind text references kind)`
const names =
  'plain lonely expressive booked parent child together serial token accepted typed'.split(' ')
const tables = `${names
  .map(
    (name) =>
      `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "k"\n${name === 'accepted' ? 'local_constraints = ["accepted_code"]\n' : ''}`,
  )
  .join('\n')}\n[[omnisharded_tables]]\ndatabase = "app"\ntables = ["kind"]`

describe('constraints that no shard can keep', () => {
  const postgres = usePostgres({ version: 15 })
  let query: (sql: string) => Promise<Record<string, unknown>[]>
  let notes: string
  let checked: string
  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const databases = [await postgres().createDatabase(), await postgres().createDatabase()]
    for (const database of databases) {
      const client = await postgres().connect(0, database)
      await client.query(schema)
      await client.end()
    }
    const shards = databases.map((database) => ({ host, port, database }))
    const files = writeServeConfig({ shards, tables })
    const at = ['-c', files.configPath, '-u', files.usersPath]
    const setup = await runCli(['setup', ...at])
    expect(setup.code, setup.stderr).toBe(0)
    notes = setup.stderr
    const check = await runCli(['config', 'check', '--connect', '--json', ...at])
    expect(check.code, check.stderr).toBe(0)
    checked = check.stdout
    const served = await startServe({ shards, tables })
    query = async (sql) => (await served.query(sql)) as Record<string, unknown>[]
  })

  const broken = [
    ['lonely', "insert into lonely values (1, 'a')", 'lonely_code_key'],
    ['expressive', "insert into expressive values (1, 'a')", 'expressive_lower_idx'],
    ['booked', "insert into booked values (1, '[1,2)')", 'booked_during_excl'],
    ['child', 'insert into child values (1, 1)', 'child_parent_fkey'],
  ] as const
  it.each(broken)('D62, D75: writes to %s are refused by name', async (_table, sql, constraint) => {
    expect(await failure(query(sql))).toContain(`constraint "${constraint}"`)
    expect(await failure(query(sql))).toMatch(/^0A000 /)
    for (const said of [notes, checked])
      expect(said).toMatch(new RegExp(`${constraint}.*cannot be kept`))
  })

  it('D62, D75: columns that such a constraint does not watch may be changed', async () => {
    await query('update lonely set k = k where k = 1')
    expect(await failure(query("update lonely set code = 'b' where k = 1"))).toMatch(/^0A000 /)
    await query('delete from lonely where k = 1')
  })

  it('D62: what is named in local_constraints is written, and listed', async () => {
    await query("insert into accepted values (1, 'a'), (2, 'b')")
    expect(await failure(query("insert into accepted values (1, 'a')"))).toMatch(/^23505 /)
    for (const said of [notes, checked]) expect(said).toMatch(/accepted_code.*on each shard only/)
  })

  it('D24, D62: unique columns filled by generated values work as setup leaves them', async () => {
    const rows = Array.from({ length: 20 }, (_, i) => `(${i})`).join(', ')
    for (const table of ['parent', 'serial', 'token']) {
      const made = await query(`insert into ${table} (k) values ${rows} returning id`)
      expect(new Set(made.map(({ id }) => String(id))).size, table).toBe(20)
      for (const said of [notes, checked])
        expect(said).toMatch(new RegExp(`${table}_pkey.*generated values`))
    }
  })

  it('D62: constraints with the key, and foreign keys to reference tables, need no word', async () => {
    await query('insert into plain values (1, 1), (2, 1)')
    const [row] = await query('select k, id from parent limit 1')
    await query(`insert into together values (${row?.['k']}, ${row?.['id']})`)
    await query("insert into kind values ('a'); insert into typed values (1, 'a'), (2, 'a')")
    for (const name of ['plain_pkey', 'together_k_parent_fkey', 'typed_kind_fkey']) {
      expect(checked).not.toContain(name)
    }
  })

  it('D62, D75: ON CONFLICT on what a shard cannot see is refused, on the key not', async () => {
    await query('insert into plain values (1, 1), (2, 2) on conflict (k, id) do nothing')
    const sql = 'insert into serial (k) values (1), (2) on conflict (id) do nothing'
    expect(await failure(query(sql))).toMatch(/^0A000 ON CONFLICT/)
    await query("insert into accepted values (1, 'a') on conflict (code) do nothing")
  })
})
