/**
 * Generated writes on one plain PostgreSQL and over three shards, in both protocols: the same rows returned, the same tags,
 * the same errors, and afterwards the same tables; or a refusal with 0A000 that changes nothing.
 */
import { afterAll, describe, expect, it } from 'vitest'
import { makeRandom } from '../support/random.js'
import { bySize } from '../support/test-size.js'
import { type Answer, ask, asMultiset, type Mode, modes } from './ask.js'
import { useOracle } from './targets.js'

const shardSql = `
create schema w; set search_path = w;
create table acct (tenant bigint not null, id int not null check (id < 900), name text default 'none', n int not null default 1,
  made date default '2024-01-01', primary key (tenant, id));
create table item (tenant bigint, acct int, qty int, foreign key (tenant, acct) references acct);
create table kind (code text primary key, rank int not null)`
const setupSql = `${shardSql};
insert into acct (tenant, id, name, n) select t, i, 'n' || t % 3, t * i from generate_series(1, 9) t, generate_series(1, 3) i;
insert into item select t, 1 + t % 3, t from generate_series(1, 9) t;
insert into kind values ('n0', 1), ('n1', 2)`
const tables = ['acct', 'item', 'kind']
const sharding = `${['acct', 'item']
  .map((name) => `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "tenant"\n`)
  .join('\n')}\n[[omnisharded_tables]]\ndatabase = "app"\ntables = ["kind"]\n`

const random = makeRandom(20_261_130)
const int = (below: number): number => Math.floor(random() * below)
const pick = <T>(list: readonly T[]): T => list[int(list.length)] as T

const value = (): string => pick(["'a'", "'b''c'", "E'x\\\\y'", 'null', 'default', "lower('Q')"])
const key = (): string => pick(['1', '2', '5', "'7'", '8::bigint', '3 + 1', '11', '-4'])
const number = (): string => pick(['1', '2', '40', '900', 'null', 'default', '7 / 2'])
const returning = (list: string): string => pick(['', '', ` returning ${list}`])

function accounts(): string {
  const rows = Array.from({ length: 1 + int(5) }, () => {
    const id = pick([`${1 + int(3)}`, `${10 + int(400)}`, '950'])
    return `(${key()}, ${id}, ${value()}, ${number()})`
  })
  const conflict = pick([
    '',
    '',
    ' on conflict do nothing',
    ' on conflict (tenant, id) do update set tenant = excluded.tenant, n = acct.n + 1',
    ' on conflict (tenant, id) do update set name = excluded.name where acct.n > 4',
  ])
  return `insert into acct (tenant, id, name, n) values ${rows.join(', ')}${conflict}${returning('tenant, id, name, n')}`
}

const where = (): string =>
  pick([
    '',
    ' where n > 5',
    ' where tenant in (1, 2, 5)',
    ' where tenant = 3',
    " where name = 'n1' and id = 2",
    ' where exists (select from item i where i.tenant = acct.tenant and i.acct = acct.id)',
    ' where name in (select code from kind)',
    ' where id = (select max(i.acct) from item i where i.tenant = acct.tenant)',
    ' where n in (select qty from item)',
  ])

const forms: readonly (() => string)[] = [
  accounts,
  accounts,
  () =>
    `update acct set n = n + 1, name = ${pick(["'u'", 'default', 'upper(name)', 'null'])}${where()}${returning('tenant, id, n, name')}`,
  () => `update acct set id = id + ${pick(['100', '899', '0'])}${where()}`,
  () =>
    `update acct set n = i.qty from item i where i.tenant = acct.tenant and i.acct = acct.id${returning('acct.tenant, acct.n')}`,
  () => `delete from item${pick(['', ' where qty > 4', ' where tenant < 4'])}${returning('*')}`,
  () => `delete from acct${where()}${returning('id, name')}`,
  () => `delete from item using acct a where a.tenant = item.tenant and a.n > ${int(20)}`,
  () => `insert into item select tenant, id, n from acct${where()}${returning('tenant, qty')}`,
  () =>
    `insert into item (tenant, acct) values (${key()}, 1), (${key()}, ${1 + int(4)})${returning('*')}`,
  () =>
    `insert into kind values ('k${int(4)}', ${number()}), ('l${int(4)}', 3)${pick(['', ' on conflict do nothing'])}${returning('*')}`,
  () => `update kind set rank = rank + 1${pick(['', " where code > 'l'"])}${returning('code')}`,
  () => `delete from kind where rank > ${int(4)}`,
  () => `insert into acct select * from acct where tenant = ${int(9)}`,
  () => 'truncate item',
]

const sorted = (answer: Answer): string[] => asMultiset(answer.rows)
/** Its SQLSTATE; data that breaks one rule may break another, too. */
const faultOf = ({ error }: Answer): string | undefined =>
  error?.sqlstate.replace(/^23\d{3}$/, '23')

const inOrder = (sql: string): boolean =>
  /^insert into (?:acct|item|kind) .*values/.test(sql) && !sql.includes('conflict')

describe('generated writes over plain and sharded', () => {
  const oracle = useOracle({ setupSql, shardSql, tables, shards: 3, sharding, searchPath: 'w' })
  const refused = new Map<string, number>()
  let ran = 0

  const contents = async (): Promise<string[][][]> => {
    const { plain, sharded } = oracle()
    const read = async (from: typeof plain): Promise<string[][]> => {
      const all: string[][] = []
      for (const table of tables)
        all.push(sorted(await ask(from, `select * from ${table}`, 'simple')))
      return all
    }
    return [await read(plain), await read(sharded)]
  }

  const compare = (sql: string, direct: Answer, over: Answer): void => {
    if (direct.error) {
      // of several faults each server meets another one first
      expect(faultOf(over), `${sql}\n${over.error?.message}`).toBe(faultOf(direct))
      expect(over.rows, sql).toEqual([])
      return
    }
    expect(over.error, sql).toBeUndefined()
    expect(over.tag, sql).toBe(direct.tag)
    expect(over.columns, sql).toEqual(direct.columns)
    if (inOrder(sql)) expect(over.rows, sql).toEqual(direct.rows)
    else expect(sorted(over), sql).toEqual(sorted(direct))
  }

  const rounds = bySize(8, 60)

  it(`D116, D117, D132, D133: ${rounds} rounds of 20 writes leave the same rows`, async () => {
    const { plain, sharded } = oracle()
    for (let round = 0; round < rounds; round++) {
      for (let i = 0; i < 20; i++) {
        const sql = pick(forms)()
        const mode: Mode = pick(modes)
        const over = await ask(sharded, sql, mode)
        ran++
        if (over.error?.sqlstate === '0A000') {
          refused.set(over.error.message, (refused.get(over.error.message) ?? 0) + 1)
          continue
        }
        compare(sql, await ask(plain, sql, mode), over)
      }
      const [direct, over] = await contents()
      expect(over, `after round ${round}`).toEqual(direct)
    }
  }, 120_000)

  it('D80, D132: in transactions, too, an error or a rollback leaves nothing', async () => {
    const { plain, sharded } = oracle()
    for (let round = 0; round < rounds; round++) {
      const end = pick(['commit', 'rollback'])
      for (const sql of ['begin', ...Array.from({ length: 4 }, () => pick(forms)()), end]) {
        const over = await ask(sharded, sql, 'simple')
        ran++
        // a refusal fails the transaction: so it shall on the other side
        const isRefusal = over.error?.sqlstate === '0A000'
        const direct = await ask(plain, isRefusal ? 'select 1 / 0' : sql, 'simple')
        if (!isRefusal) compare(sql, direct, over)
      }
    }
    const [direct, over] = await contents()
    expect(over).toEqual(direct)
  }, 120_000)

  afterAll(() => {
    const count = [...refused.values()].reduce((sum, n) => sum + n, 0)
    console.log(`${ran} writes, ${count} refused`, Object.fromEntries(refused))
  })
})
