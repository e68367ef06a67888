/**
 * Generated statements on one PostgreSQL, through serve, and over three shards: the same answer, or over shards a refusal
 * with 0A000. A wrong answer never. Counts are printed, and shapes that must be answered are, so that refusing
 * everything would be seen.
 */
import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Chooser } from '../support/arbitraries/chooser.js'
import { type Generated, statement } from '../support/arbitraries/statements.js'
import { quoted, rowsSql, schemaSql, shardingToml, tables } from '../support/arbitraries/world.js'
import { binaryOf } from '../support/key-binary.js'
import { bySize } from '../support/test-size.js'
import { type Answer, type AskedParameter, ask, asMultiset, type Mode, modes } from './ask.js'
import { type Oracle, useOracle } from './targets.js'

const seed = Number(process.env['PGSHARD_SEED'] ?? bySize(20260101, Date.now() % 1_000_000_000))
const count = Number(process.env['PGSHARD_STATEMENTS'] ?? bySize(700, 20_000))

const names = tables.map((table) => table.name)

interface Asked {
  readonly statement: Generated
  readonly mode: Mode
  readonly parameters: readonly AskedParameter[]
}

function asked(choose: Chooser): Asked {
  const made = statement(choose)
  const mode = choose.pick(made.parameters.length > 0 ? modes.slice(1) : modes)
  const parameters = made.parameters.map(({ oid, type, text }): AskedParameter => {
    const format = choose.chance(0.5) ? 1 : 0
    return { type: oid, format, bytes: format === 1 ? binaryOf(type, text) : Buffer.from(text) }
  })
  return { statement: made, mode, parameters }
}

async function run(target: Oracle['plain'], one: Asked, probe: Probe): Promise<Answer> {
  const { sql, writes } = one.statement
  if (!writes) return ask(target, sql, one.mode, one.parameters)
  await ask(target, 'begin', 'simple')
  const answer = await ask(target, sql, one.mode, one.parameters)
  if (!answer.error) await probe(target, answer)
  await ask(target, 'rollback', 'simple')
  return answer
}

/** Looks at what was written before it is rolled back; appends it to the answer's rows. */
type Probe = (target: Oracle['plain'], answer: Answer) => Promise<void>

/** The keys that the plain server stored, then, on each target, the rows that are found by them. */
function makeProbe(one: Asked): Probe {
  const table = one.statement.target
  const key = table?.key?.column
  let keys: string[] | undefined
  return async (target, answer) => {
    if (!table || key === undefined) return
    const stored = `select distinct "${key}"::text from ${table.name} where "${key}" is not null and xmin = pg_current_xact_id()::xid`
    keys ??= (await ask(target, stored, 'simple')).rows.map(([text]) => text!)
    for (const text of keys.slice(0, 3)) {
      const sql = `select id, label from ${table.name} where "${key}" = ${quoted(text)}`
      const found = await ask(target, sql, 'simple')
      answer.rows.push([found.error?.message ?? asMultiset(found.rows).join(' ')])
    }
  }
}

const rowsOf = (answer: Answer, { statement }: Asked) =>
  statement.ordered ? answer.rows.map((row) => JSON.stringify(row)) : asMultiset(answer.rows)

const shown = (answer: Answer, one: Asked) => ({
  columns: answer.columns,
  tag: answer.tag,
  rows: rowsOf(answer, one),
  sqlstate: answer.error?.sqlstate,
})

const same = (a: Answer, b: Answer, one: Asked): boolean =>
  JSON.stringify(shown(a, one)) === JSON.stringify(shown(b, one))

type Verdict = 'answered' | 'refused' | 'failed' | 'wrong'

/** A server's error must be the server's error; where it says one, a refusal is as good. */
function judge(direct: Answer, over: Answer, one: Asked): Verdict {
  if (direct.error) {
    if (over.error?.sqlstate === direct.error.sqlstate) return 'failed'
    // of two faults in one text: a parameter that it does not name is told before a name that means nothing
    if (over.error?.sqlstate === '42P18' && direct.error.sqlstate.startsWith('42')) return 'failed'
    return over.error?.sqlstate === '0A000' ? 'refused' : 'wrong'
  }
  if (over.error) return over.error.sqlstate === '0A000' ? 'refused' : 'wrong'
  return same(direct, over, one) ? 'answered' : 'wrong'
}

/** What became of the statements, by kind. */
class Tally {
  readonly wrong: string[] = []
  readonly #counts = new Map<string, Record<Verdict, number>>()
  readonly #reasons = new Map<string, number>()

  proxied(at: number, one: Asked, direct: Answer, through: Answer): void {
    if (!same(direct, through, one)) this.wrong.push(report('proxied', at, one, direct, through))
  }

  sharded(at: number, one: Asked, direct: Answer, over: Answer): void {
    const verdict = judge(direct, over, one)
    if (verdict === 'wrong') this.wrong.push(report('sharded', at, one, direct, over))
    if (verdict === 'refused') {
      const message = over.error!.message.replace(/"[^"]*"/g, '""')
      this.#reasons.set(message, (this.#reasons.get(message) ?? 0) + 1)
    }
    const kind = `${one.statement.writes ? 'write' : 'read'} ${one.statement.shape}`
    const row = this.#counts.get(kind) ?? { answered: 0, refused: 0, failed: 0, wrong: 0 }
    this.#counts.set(kind, row)
    row[verdict]++
  }

  share(kind: string): number {
    const row = this.#counts.get(kind)
    return row ? row.answered / (row.answered + row.refused + row.failed + row.wrong) : 0
  }

  print(): void {
    const total = (verdict: Verdict) =>
      [...this.#counts.values()].reduce((sum, row) => sum + row[verdict], 0)
    console.log(
      `seed ${seed}: ${count} statements, ${total('answered')} answered, ${total('refused')} refused, ${total('failed')} failed on PostgreSQL too, ${total('wrong')} wrong`,
    )
    console.table(Object.fromEntries(this.#counts))
    if (process.env['PGSHARD_REASONS'])
      console.log([...this.#reasons].sort((a, b) => b[1] - a[1]).slice(0, 40))
    if (process.env['PGSHARD_WRONG'])
      writeFileSync(process.env['PGSHARD_WRONG'], this.wrong.join('\n\n'))
  }
}

function report(who: string, at: number, one: Asked, direct: Answer, got: Answer): string {
  const { sql, parameters } = one.statement
  const values = parameters.map(
    ({ oid, text }, i) => `$${i + 1} = ${text} (type ${oid}, format ${one.parameters[i]!.format})`,
  )
  const line = (answer: Answer): string =>
    answer.error
      ? `${answer.error.sqlstate} ${answer.error.message}`
      : `${answer.tag} ${answer.columns} ${rowsOf(answer, one).slice(0, 12).join(' ')}`
  return [
    `${who}, statement ${at}, ${one.mode}: ${sql}`,
    ...values,
    `  PostgreSQL: ${line(direct)}`,
    `  got:        ${line(got)}`,
  ].join('\n')
}

describe('generated statements over plain, proxied and sharded', () => {
  const oracle = useOracle({
    setupSql: `create schema gen; ${schemaSql}; ${rowsSql(7, 26)}`,
    shardSql: `create schema gen; ${schemaSql}`,
    tables: names,
    shards: 3,
    sharding: shardingToml,
    searchPath: 'gen',
  })

  it('loads every row by COPY', async () => {
    const { plain, sharded } = oracle()
    for (const name of names) {
      const sql = `select * from ${name}`
      const [direct, over] = [await ask(plain, sql, 'simple'), await ask(sharded, sql, 'simple')]
      expect(over.error, name).toBeUndefined()
      expect(asMultiset(over.rows), name).toEqual(asMultiset(direct.rows))
    }
  })

  it(
    'answers as one PostgreSQL, or refuses',
    async () => {
      const { plain, proxied, sharded, served } = oracle()
      const tally = new Tally()
      for (let at = 0; at < count; at++) {
        const one = asked(new Chooser(seed + at * 7919))
        const probe = makeProbe(one)
        const direct = await run(plain, one, probe)
        tally.proxied(at, one, direct, await run(proxied, one, probe))
        tally.sharded(at, one, direct, await run(sharded, one, probe))
      }
      tally.print()
      expect(tally.wrong.slice(0, 10).join('\n\n')).toBe('')
      expect(served.program.stderr).not.toMatch(/internal error/i)
      expect(tally.share('read pinned')).toBeGreaterThan(0.5)
      expect(tally.share('read scatter')).toBeGreaterThan(0.3)
      expect(tally.share('write pinned')).toBeGreaterThan(0.5)
    },
    bySize(120_000, 3_600_000),
  )
})
