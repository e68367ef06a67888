/**
 * `pg_dump --data-only` of a shop: ten tables of different shapes, piped into four shards, by PostgreSQL 15 and 18. What comes out
 * of the shards together is what was in the one database.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCli } from '../support/run-cli.js'
import { usePostgres } from '../support/use-postgres.js'

const SHARDS = 4
const PG_DUMP = '/usr/lib/postgresql/15/bin/pg_dump'

const schema = `
create schema "Shop Data";
create type mood as enum ('sad', 'it''s ok', 'very, happy');
create domain email as text check (value like '%@%');
create table tenant (tenant bigint primary key, name text not null, since timestamptz, mood mood);
create table customer (gone int, tenant bigint, id bigint generated always as identity, mail email, "E-Mail ""old""" text, dropped text);
alter table customer drop column gone, drop column dropped;
create table article (tenant bigint, sku text, price numeric(12,2), gross numeric generated always as (price * 1.19) stored, tags text[], doc jsonb);
create table "Shop Data"."Order Item" (tenant bigint, "No" int, "when" timestamptz, qty smallint, matrix int[][], total double precision);
create table picture (tenant bigint, data bytea, taken date, span tstzrange);
create table note ("user" text, tenant bigint, "select" text, body text, at time with time zone);
create table event (at timestamp, kind "char", tenant bigint, payload json, took interval) partition by hash (tenant);
create table event_0 partition of event for values with (modulus 2, remainder 0);
create table event_1 partition of event for values with (modulus 2, remainder 1);
create table session (id uuid, tenant bigint, ip inet, mac macaddr, bits bit(5), flags bit varying);
create table empty (tenant bigint, v text);
create table country (code char(2) primary key, name varchar(40), area point);`

const rows = `
insert into tenant select g, 'tenant ' || g, timestamptz '2026-03-29 01:30+01' + g * interval '37 minutes', (array['sad', 'it''s ok', 'very, happy'])[1 + g % 3]::mood from generate_series(1, 200) g;
insert into customer (tenant, mail, "E-Mail ""old""") select 1 + g % 200, 'a' || g || '@b.c', E'x\\\\.\\ty' || g from generate_series(1, 3000) g;
insert into article (tenant, sku, price, tags, doc) select 1 + g % 200, 'sku ' || g, g / 7.0, array['a "quoted"', null, 'c,d\\e', g::text], jsonb_build_object('n', g, 'text', E'line\\nbreak \\\\ "x"') from generate_series(1, 2000) g;
insert into "Shop Data"."Order Item" select 1 + g % 200, g, now(), g % 100, array[[g, 1], [2, null]], g * 1e-5 from generate_series(1, 2000) g;
insert into picture select 1 + g % 200, decode(md5(g::text) || '0a0d5c2e', 'hex'), date '2026-01-01' + g, tstzrange(null, now()) from generate_series(1, 500) g;
insert into note select case g % 3 when 0 then '' when 1 then null else '\\N' end, 1 + g % 200, E'\\\\.', E'\\r\\n\\t\\b\\f\\v' || g || 'äöü€😀', '12:00+02' from generate_series(1, 1000) g;
insert into event select timestamp '2026-01-01' + g * interval '1 s', 'x', 1 + g % 200, '{"a": [1, 2 ]}', g * interval '1 day 2 s' from generate_series(1, 1000) g;
insert into session select md5(g::text)::uuid, 1 + g % 200, '10.0.0.1/8', '08:00:2b:01:02:03', b'10101', b'1' from generate_series(1, 700) g;
insert into country values ('de', 'Germany', point(1, 2)), ('fr', E'Fran\\tce', null);`

const sharded: Record<string, number> = {
  ...{ tenant: 200, customer: 3000, article: 2000, '"Shop Data"."Order Item"': 2000 },
  ...{ picture: 500, note: 1000, event: 1000, session: 700, empty: 0 },
}

describe.each([15, 18] as const)('a shop of PostgreSQL %i', (version) => {
  const postgres = usePostgres({ version })
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-shop-'))
  const path = (name: string) => join(directory, name)
  const databases: string[] = []
  const ask = async (database: string | undefined, sql: string) => {
    const client = await postgres().connect(0, database)
    try {
      return (await client.query<Record<string, string>>(sql)).rows
    } finally {
      await client.end()
    }
  }

  beforeAll(async () => {
    await postgres().query(schema)
    await postgres().query(rows)
    for (let shard = 0; shard < SHARDS; shard++) {
      databases.push(await postgres().createDatabase())
      await ask(databases[shard], schema)
    }
    const { host, port } = postgres().servers[0]!
    const lines = databases.map(
      (database, shard) =>
        `[[databases]]\nname = "app"\nhost = "${host}"\nport = ${port}\ndatabase_name = "${database}"\nuser = "postgres"\nshard = ${shard}\n`,
    )
    // The dump has the rows of each partition; the configuration knows the whole only.
    const names = Object.keys(sharded).map((name) => name.replace(/^.*\."|"$/g, ''))
    const tables = names.map(
      (name) =>
        `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "tenant"\ndata_type = "bigint"\n`,
    )
    tables.push('[[omnisharded_tables]]\ndatabase = "app"\ntables = ["country"]\n')
    writeFileSync(path('pgdog.toml'), [...lines, ...tables].join(''))
    writeFileSync(path('users.toml'), '[[users]]\nname = "app"\ndatabase = "app"\npassword = "x"\n')
  })
  afterAll(() => rmSync(directory, { recursive: true, force: true }))

  const load = (input: string | Buffer, ...flags: string[]) => {
    const config = ['--config', path('pgdog.toml'), '--json']
    return runCli(['copy-shard', '-', '--format', 'pg_dump', ...config, ...flags], { input })
  }
  /** The dump of the version's own tables; pg_dump 15 does not read a server of 18, so there the server writes the COPY data. */
  async function dump(): Promise<Buffer> {
    if (version === 15 && existsSync(PG_DUMP)) {
      const args = ['--data-only', '-d', postgres().url()]
      const made = spawnSync(PG_DUMP, args, { maxBuffer: 1 << 28 })
      expect(made.status, made.stderr.toString()).toBe(0)
      return made.stdout
    }
    return await dumpAsEighteen()
  }

  /** As pg_dump 18 writes it: \\restrict around all, and settings that older servers do not know. */
  async function dumpAsEighteen(): Promise<Buffer> {
    const parts = [
      '--\n-- PostgreSQL database dump\n--\n\n\\restrict Zk3nTQm5\n\n',
      "SET statement_timeout = 0;\nSET transaction_timeout = 0;\nSET client_encoding = 'UTF8';\nSELECT pg_catalog.set_config('search_path', '', false);\n",
    ]
    const leaves = ['event_0', 'event_1']
    const names = [...Object.keys(sharded).filter((name) => name !== 'event'), 'country', ...leaves]
    for (const name of names) {
      const columns = await ask(
        undefined,
        `select quote_ident(attname) as n from pg_attribute where attrelid = '${name}'::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`,
      )
      const list = columns.map(({ n }) => n).join(', ')
      const qualified = name.includes('.') ? name : `public.${name}`
      const url = postgres().url()
      const out = path(`out-${parts.length}`)
      const copied = await runCli(
        ...([
          [
            'copy-shard',
            '--out',
            out,
            '--format',
            'text',
            '--table',
            name,
            '--target',
            url,
            '--quiet',
          ],
        ] as const),
      )
      expect(copied.code, copied.stderr).toBe(0)
      parts.push(`COPY ${qualified} (${list}) FROM stdin;\n`, `@${out}`, '\\.\n\n\n')
    }
    parts.push("SELECT pg_catalog.setval('public.customer_id_seq', 3000, true);\n\n")
    parts.push('--\n-- PostgreSQL database dump complete\n--\n\n\\unrestrict Zk3nTQm5\n\n')
    return Buffer.concat(
      parts.map((part) => (part.startsWith('@') ? readFileSync(part.slice(1)) : Buffer.from(part))),
    )
  }

  it('D138: is spread over the shards, value by value', async () => {
    const { code, stdout, stderr } = await load(await dump())
    expect(code, stderr).toBe(0)
    const total = Object.values(sharded).reduce((sum, count) => sum + count, 2)
    expect(JSON.parse(stdout)).toMatchObject({ read: total, written: total, rejected: 0 })
    expect(stderr).toContain('passed over 1 setval lines')
    for (const [table, count] of Object.entries(sharded)) {
      const sql = `select t::text as t from ${table} t`
      const whole = (await postgres().query(sql)).map(({ t }) => t as string).sort()
      const parts = await Promise.all(databases.map((database) => ask(database, sql)))
      expect(parts.flatMap((found) => found.map(({ t }) => t)).sort(), table).toEqual(whole)
      expect(whole).toHaveLength(count)
      const filled = parts.filter((found) => found.length > 0).length
      expect(filled, table).toBe(count === 0 ? 0 : SHARDS)
    }
    const countries = await Promise.all(
      databases.map((one) => ask(one, 'select c::text from country c order by code')),
    )
    for (const found of countries)
      expect(found).toEqual(await ask(undefined, 'select c::text from country c order by code'))
  }, 120_000)

  it('is refused when it is no dump, not all of it, or has INSERT statements', async () => {
    const head = "--\n-- PostgreSQL database dump\n--\nSET client_encoding = 'UTF8';\n"
    const block = 'COPY public.empty (tenant, v) FROM stdin;\n1\tx\n\\.\n'
    const refused: [string, string][] = [
      ['PGDMP\x01\x0e\x00', 'no plain dump'],
      [`${head}INSERT INTO public.empty VALUES (1, 'x');\n`, 'INSERT statements'],
      [head + block, 'cut short'],
      [`${head}COPY public.empty FROM stdin;\n\n\n\\.\n`, 'no columns'],
    ]
    for (const [text, word] of refused) {
      const { code, stderr } = await load(text, '--dry-run')
      expect(code, stderr).toBe(5)
      expect(stderr).toContain(word)
    }
    const late = await load(head + block)
    expect(late.code).toBe(6)
    expect(late.stderr).toContain('complete: public.empty')
    await Promise.all(databases.map((one) => ask(one, 'truncate empty')))
  }, 60_000)

  it('is read in its own encoding', async () => {
    const text =
      "SET client_encoding = 'LATIN1';\nCOPY public.empty (tenant, v) FROM stdin;\n7\té\n\\.\n"
    const { code, stderr } = await load(Buffer.from(text, 'latin1'))
    expect(code, stderr).toBe(0)
    const found = (
      await Promise.all(databases.map((one) => ask(one, 'select v from empty')))
    ).flat()
    expect(found).toEqual([{ v: 'é' }])
    await Promise.all(databases.map((one) => ask(one, 'truncate empty')))
  })
})
