/** MERGE over four shards and on one plain PostgreSQL: the same tags and errors, and the same rows afterwards; or a refusal. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { type Answer, ask, asMultiset, modes } from './ask.js'
import { useOracle } from './targets.js'

const shardSql = `
create schema m; set search_path = m;
create table stock (tenant bigint not null, sku text, n int, primary key (tenant, sku));
create table fresh (tenant bigint, sku text, n int);
create table price (sku text primary key, cents int)`
const setupSql = `${shardSql};
insert into stock select t, 's' || i, t * i from generate_series(1, 8) t, generate_series(1, 3) i;
insert into fresh select t, 's' || (t % 5), t from generate_series(3, 14) t;
insert into price values ('s1', 100), ('s2', 250)`
const tables = ['stock', 'fresh', 'price']
const sharding = `${['stock', 'fresh']
  .map((name) => `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "tenant"\n`)
  .join('\n')}\n[[omnisharded_tables]]\ndatabase = "app"\ntables = ["price"]\n`
const sorted = (answer: Answer): string[] => asMultiset(answer.rows)

describe('MERGE over plain and sharded', () => {
  const oracle = useOracle({ setupSql, shardSql, tables, shards: 4, sharding, searchPath: 'm' })
  beforeEach(async () => {
    await ask(oracle().plain, 'begin', 'simple')
    await oracle().reload()
  })
  afterEach(async () => {
    await ask(oracle().plain, 'rollback', 'simple')
  })

  const upsert =
    'when matched then update set n = stock.n + s.n when not matched then insert (tenant, sku, n) values (s.tenant, s.sku, s.n)'
  const merges = [
    `merge into stock using fresh s on stock.tenant = s.tenant and stock.sku = s.sku ${upsert}`,
    'merge into stock t using fresh as f on f.tenant = t.tenant and f.sku = t.sku when matched and f.n > 5 then delete when matched then do nothing when not matched and f.n < 12 then insert values (f.tenant, f.sku, f.n)',
    `merge into stock using (values (1, 's1', 5), (2, 's9', null), (3, 's2', 7), (77, 'x', 1)) as s (tenant, sku, n) on stock.tenant = s.tenant and stock.sku = s.sku ${upsert}`,
    "merge into stock using (values (1::bigint, 's1'), (2, 's2')) v on v.column1 = stock.tenant and stock.sku = v.column2 when matched then delete",
    `merge into stock using (select 5 as tenant, 's3' as sku, 100 as n) s on stock.tenant = s.tenant and stock.sku = s.sku ${upsert}`,
    'merge into stock using price p on stock.sku = p.sku when matched then update set n = p.cents',
    "merge into price using (values ('s1', 1), ('s7', 7)) v (sku, cents) on price.sku = v.sku when matched then update set cents = v.cents when not matched then insert values (v.sku, v.cents)",
    `merge into stock using (values (1, 's1', 5), (1, 's1', 6), (4, 's1', 6)) as s (tenant, sku, n) on stock.tenant = s.tenant and stock.sku = s.sku ${upsert}`,
    `merge into stock using (values (1, 's1', 5), (null, 's1', 6)) as s (tenant, sku, n) on stock.tenant = s.tenant and stock.sku = s.sku ${upsert}`,
    `merge into stock using (values (1, 's1', 5), (6, 's1', 6)) as s (tenant, sku, n) on stock.tenant = s.tenant and stock.sku = s.sku when matched then update set n = s.n / (s.n - 5)`,
    `merge into stock using (values (1, null, 5), (6, null, 6)) as s (tenant, sku, n) on stock.tenant = s.tenant and stock.sku = s.sku when matched then update set n = s.n`,
  ]
  it.each(modes)('D116, D133: %s: rows meet rows of their own key', async (mode) => {
    const { plain, sharded } = oracle()
    for (const sql of merges) {
      await ask(plain, 'savepoint one', 'simple')
      const direct = await ask(plain, sql, mode)
      if (direct.error) await ask(plain, 'rollback to one', 'simple')
      const over = await ask(sharded, sql, mode)
      expect(over.error?.sqlstate, `${sql}\n${over.error?.message}`).toBe(direct.error?.sqlstate)
      expect(over.tag, sql).toBe(direct.tag)
      for (const table of tables) {
        const wanted = sorted(await ask(plain, `select * from ${table}`, 'simple'))
        const found = sorted(await ask(sharded, `select * from ${table}`, 'simple'))
        expect(found, `${table} after ${sql}`).toEqual(wanted)
      }
    }
    const home = await ask(
      sharded,
      'select count(*) from stock where tenant in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 77)',
      'simple',
    )
    const all = await ask(sharded, 'select count(*) from stock', 'simple')
    expect(home.rows).toEqual(all.rows)
  })

  it('D75, D133: what would need rows of other shards is refused', async () => {
    const { sharded } = oracle()
    for (const sql of [
      'merge into stock using fresh s on stock.sku = s.sku when matched then delete',
      `merge into stock using fresh s on stock.tenant = s.tenant when not matched then insert values (s.n, s.sku, 1)`,
      'merge into stock using fresh s on stock.tenant = s.tenant when matched then update set tenant = 4',
      'merge into stock using price p on stock.sku = p.sku when not matched then insert values (1, p.sku, 1)',
      'merge into stock using (select * from fresh limit 3) s on stock.tenant = s.tenant when matched then delete',
      'merge into price using fresh s on s.sku = price.sku when matched then delete',
    ]) {
      const { error } = await ask(sharded, sql, 'simple')
      expect(error?.sqlstate, sql).toBe('0A000')
      expect(error?.hint, sql).toBeTruthy()
    }
  })
})
