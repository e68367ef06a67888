/**
 * The recorded writes and those of ORMs on one PostgreSQL and over four shards, in three forms of the protocol, alone and
 * in a transaction: the same answer and the same rows behind it, or a refusal with 0A000 and a hint that changes nothing.
 * Tables with two collations, keys that are NULL, and shards without rows. Counted by family, with the refusals.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { projectRoot } from '../support/run-cli.js'
import { bySize } from '../support/test-size.js'
import { type Answer, type AskedParameter, ask, asMultiset, type Mode, modes } from './ask.js'
import { judge } from './random/families.js'
import { type Oracle, useOracle } from './targets.js'

const file = (name: string): string => readFileSync(join(projectRoot, 'fixtures/sql', name), 'utf8')

interface Case {
  readonly id: string
  readonly path: string
  readonly sql: string
  readonly values: readonly string[]
}

/** Of the statements with parameters. */
const values: Readonly<Record<string, string>> = {
  'orm-004': '501|a@b.c|N|2024-03-03',
  'orm-005': '1|open|5.5|2|paid|6.5',
  'orm-006': 'new|2024-05-05|3',
  'orm-007': '4',
  'orm-013': '3|open|1.5',
  'orm-014': 'paid|7|7',
  'orm-015': '1|2|3|4',
  'orm-021': '1|2.5|2024-01-02|2024-01-03',
  'orm-023': '1|2024-01-01|3',
  'orm-030': '4|9|2024-01-02|2024-01-03',
  'orm-032': '2|paid|3|3|1',
  'orm-051': 'open|2|9|900',
  'orm-052': 'paid|2|16|1|3',
  'orm-060': '3',
  'orm-064': '1|2|3|4',
  'orm-065': '1|5|2|6',
  'orm-067': '5|1.234',
  'orm-068': '{1,2,3}|{4,5,6}',
  'orm-069': '8',
  'orm-084': '99|3',
  'orm-101': '1|2|3|4',
}

function ormWrites(): Case[] {
  const lines = file('orm.jsonl').trim().split('\n')
  return lines
    .map((line) => JSON.parse(line) as { id: string; sql: string; kind: string })
    .filter(({ kind }) => kind === 'write')
    .map(({ id, sql }) => ({
      id,
      path: 'o, public',
      sql: sql.replaceAll('"public".', ''),
      values: values[id]?.split('|') ?? [],
    }))
}

const recorded = JSON.parse(file('writes.json')) as { id: string; sql: string }[]
const cases: readonly Case[] = [
  ...recorded.map(({ id, sql }) => ({ id, path: 'xs', sql, values: [] })),
  ...ormWrites(),
]

const recordedTables = ['acct', 'item', 'lonely', 'hollow']
const ormTables = [
  ...['orders', 'orders_archive', 'order_items', 'shop_order', 'tenant', 'jobs'],
  ...['users', 'pgbench_history', 'queues'],
]
const columnOf = (name: string): string =>
  name === 'users' ? 'id' : name === 'pgbench_history' ? 'aid' : 'tenant_id'
const sharded = (schema: string, name: string, column: string): string =>
  `[[sharded_tables]]\ndatabase = "app"\nschema = "${schema}"\nname = "${name}"\ncolumn = "${column}"\n`
const recordedSql = file('setup.sql')
const recordedSchema = recordedSql.replace(/insert into[\s\S]*?;(?=\s|$)/gi, '')
const [ormSchema = '', ormRows = ''] = file('orm-writes.sql').split('-- rows')

const asked = ({ sql, values: of }: Case, mode: Mode) => {
  if (mode === 'simple') {
    const inline = sql.replace(/\$(\d+)/g, (_, number) => `'${of[Number(number) - 1]}'`)
    return { sql: inline, parameters: [] }
  }
  const parameters = of.map(
    (value): AskedParameter => ({ type: 0, format: 0, bytes: Buffer.from(value) }),
  )
  return { sql, parameters }
}

/** Identities and times of the present are drawn: these are not compared. */
function withoutDrawn(value: string | null): string | null {
  if (value === null) return null
  if (/^\d{7,}$/.test(value) || /^20(?:2[6-9]|[3-9]\d)-/.test(value)) return '#'
  if (/^[0-9a-f]{16}$/.test(value) && BigInt(`0x${value}`) >= 1_000_000n) return '#'
  return value
}

const shown = ({ columns, rows, tag, error }: Answer): string =>
  JSON.stringify([
    columns.map((name) =>
      name.replace(/:(\d+)$/, (_, oid) => (Number(oid) < 16384 ? `:${oid}` : '')),
    ),
    asMultiset(rows.map((row) => row.map(withoutDrawn))),
    tag,
    error?.sqlstate,
  ])

type Target = Oracle['plain']

const contents = async (from: Target, path: string): Promise<string> => {
  const parts: string[] = []
  for (const table of path === 'xs' ? recordedTables : ormTables)
    parts.push(shown(await ask(from, `select * from ${table}`, 'simple')))
  return parts.join('\n')
}

const familyOf = (sql: string): string => /^\s*(\w+)/.exec(sql)?.[1]?.toLowerCase() ?? ''

describe('recorded writes and those of ORMs over four shards', () => {
  const oracle = useOracle({
    setupSql: `${ormSchema}${ormRows}${recordedSql}`,
    shardSql: `${ormSchema}${recordedSchema}`,
    tables: [
      ...recordedTables.map((name) => `xs.${name}`),
      ...ormTables.map((name) => `o.${name}`),
    ],
    shards: 4,
    sharding: [
      ...recordedTables.map((name) => sharded('xs', name, 'tenant')),
      ...ormTables
        .filter((name) => name !== 'queues')
        .map((name) => sharded('o', name, columnOf(name))),
      '[[omnisharded_tables]]\ndatabase = "app"\ntables = ["o.queues"]\n',
    ].join('\n'),
    searchPath: 'xs',
  })
  const refused = new Map<string, string>()
  const failed = new Set<string>()

  /** Both asked, with the transaction of the plain one open. @returns whether both have done it */
  const compare = async (one: Case, mode: Mode, what: string): Promise<boolean> => {
    const { plain, sharded: over } = oracle()
    const { sql, parameters } = asked(one, mode)
    const direct = await ask(plain, sql, mode, parameters)
    const given = await ask(over, sql, mode, parameters)
    const verdict = judge(direct, given, shown(direct) === shown(given))
    if (verdict === 'wrong')
      expect(`${shown(given)} ${given.error?.message}`, what).toBe(shown(direct))
    if (verdict === 'refused') refused.set(one.id, given.error?.message ?? '')
    if (verdict === 'failed') failed.add(one.id)
    return verdict === 'same'
  }

  const sameRows = async ({ path }: Case, what: string): Promise<void> => {
    const { plain, sharded: over } = oracle()
    expect(await contents(over, path), what).toBe(await contents(plain, path))
  }

  const inTransaction = async (one: Case, mode: Mode): Promise<void> => {
    const both = [oracle().plain, oracle().sharded]
    const what = `${one.id}, ${mode}, in a transaction`
    for (const target of both) await ask(target, 'begin', 'simple')
    if (await compare(one, mode, what)) await sameRows(one, what)
    for (const target of both) await ask(target, 'rollback', 'simple')
  }

  const alone = async (one: Case, mode: Mode): Promise<void> => {
    const { plain, reload } = oracle()
    const what = `${one.id}, ${mode}, alone`
    await ask(plain, 'begin', 'simple')
    const isDone = await compare(one, mode, what)
    // what was refused or failed has left nothing
    if (!isDone) await ask(plain, 'rollback', 'simple')
    await sameRows(one, what)
    if (!isDone) return
    await ask(plain, 'rollback', 'simple')
    await reload()
  }

  const all = async (): Promise<void> => {
    let path = ''
    for (const [number, one] of cases.entries()) {
      if (one.path !== path) {
        path = one.path
        for (const target of [oracle().plain, oracle().sharded])
          await target.query(`set search_path to ${path}`)
      }
      for (const mode of modes) await inTransaction(one, mode)
      const forms = bySize([modes[number % modes.length] as Mode], modes)
      for (const mode of forms) await alone(one, mode)
    }
  }

  it(
    'D76, D116, D117, D132, D133: answer and leave the rows as one PostgreSQL, or say why they do not',
    async () => {
      await all()
      const families = new Map<string, { statements: number; refused: number; failed: number }>()
      for (const { id, sql } of cases) {
        for (const name of [familyOf(sql), 'all']) {
          const row = families.get(name) ?? { statements: 0, refused: 0, failed: 0 }
          row.statements++
          row.refused += Number(refused.has(id))
          row.failed += Number(failed.has(id))
          families.set(name, row)
        }
      }
      console.table(Object.fromEntries(families))
      console.log(Object.fromEntries(refused), [...failed])
      expect(refused.size).toBeLessThanOrEqual(cases.length / 10)
      expect(failed.size).toBeLessThanOrEqual(cases.length / 10)
      expect(oracle().served.program.stderr).not.toMatch(/internal error/i)
    },
    bySize(180_000, 600_000),
  )
})
