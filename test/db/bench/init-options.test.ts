/** `bench init` beside `pgbench -i` with the same options: the same tables, keys, partitions and rows. */
import { spawnSync } from 'node:child_process'
import { beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../../support/run-cli.js'
import { findTool, isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'

const catalogSql = `
  select c.relname, c.relkind, c.relpersistence, c.reloptions::text, t.spcname, pg_get_expr(c.relpartbound, c.oid) as bound,
         pg_get_partkeydef(c.oid) as partkey,
         (select string_agg(attname || ' ' || format_type(atttypid, atttypmod) || ' ' || attnotnull, ', ' order by attnum)
            from pg_attribute where attrelid = c.oid and attnum > 0) as columns,
         (select string_agg(conname || ' ' || pg_get_constraintdef(k.oid), '; ' order by conname) from pg_constraint k where conrelid = c.oid) as constraints
    from pg_class c left join pg_tablespace t on t.oid = c.reltablespace
   where relnamespace = 'public'::regnamespace order by 1`

describe.skipIf(isMissing('pgbench'))('init', () => {
  const postgres = usePostgres({ version: 15 })
  let theirs: string
  let own: string

  beforeAll(async () => {
    theirs = await postgres().createDatabase()
    own = await postgres().createDatabase()
  })

  const ask = async (database: string, sql: string) => {
    const client = await postgres().connect(0, database)
    try {
      return (await client.query(sql)).rows as unknown[]
    } finally {
      await client.end()
    }
  }

  /** Numbers of seconds blanked, and what each program puts around the steps left out. */
  const steps = (said: string) =>
    /done in [\d.]+ s \((.*)\)/.exec(said)?.[1]?.replace(/[\d.]+ s/g, 'n s')

  test.each([
    [['-I', 'dtgvp']],
    [['--init-steps=d t G p f', '--unlogged-tables']],
    [['--partitions=3', '--fillfactor=80']],
    [['--partitions=4', '--partition-method=hash', '--foreign-keys', '--unlogged-tables']],
    [['-I', 'dtGvp', '--tablespace=pg_default', '--index-tablespace=pg_default', '-n']],
    [['--partitions=2', '--partition-m', 'range', '--unlog', '--foreign', '--init-s=dtgp', '-q']],
  ])('has what pgbench has with %j', async (options) => {
    const them = spawnSync(
      findTool('pgbench') as string,
      ['-i', ...options, postgres().url(0, theirs)],
      { encoding: 'utf8' },
    )
    expect(them.status).toBe(0)
    const us = await runCli(['bench', '-i', ...options, postgres().url(0, own)])
    expect(us.code).toBe(0)
    expect(await ask(own, catalogSql)).toEqual(await ask(theirs, catalogSql))
    for (const sql of [
      'select count(*), sum(aid), sum(bid), sum(abalance), count(filler) from pgbench_accounts',
      'select * from pgbench_tellers order by tid',
      'select * from pgbench_branches',
    ])
      expect(await ask(own, sql)).toEqual(await ask(theirs, sql))
    expect(steps(us.stderr)).toBe(steps(them.stderr))
  })

  test.each([
    [['-I', 'dx'], /unrecognized initialization step "x"/],
    [['-I', ''], /no initialization steps specified/],
    [['--partition-method=hash'], /partition-method requires greater than zero --partitions/],
    [['--partition=2'], /option "--partition" is ambiguous|--partition/],
    [['--partition-method=list', '--partitions=2'], /list/],
  ])('refuses %j', async (options, message) => {
    const { code, stderr } = await runCli(['bench', '-i', ...options, postgres().url(0, own)])
    expect(code).not.toBe(0)
    expect(stderr).toMatch(message)
  })
})
