/**
 * Generated SELECTs with ORDER BY, LIMIT, DISTINCT, GROUP BY and aggregates over four shards, merged in the proxy, and on
 * one PostgreSQL: the same answer, or a refusal with 0A000. Gathering is off, so that nothing else answers in its place.
 */
import { writeFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import { Chooser } from '../support/arbitraries/chooser.js'
import { bySize } from '../support/test-size.js'
import { type Answer, ask, type Mode, modes } from './ask.js'
import { type MadeStatement, MergeStatements } from './merge-statements.js'
import { rowsSql, schemaSql, shardingToml, tableNames } from './merge-tables.js'
import { useOracle } from './targets.js'

const seed = Number(process.env['PGSHARD_SEED'] ?? bySize(20261131, Date.now() % 1_000_000_000))
const count = Number(process.env['PGSHARD_STATEMENTS'] ?? bySize(500, 12_000))

interface Asked extends MadeStatement {
  readonly mode: Mode
  readonly inTransaction: boolean
}

function asked(at: number): Asked {
  const choose = new Chooser(seed + at * 7919)
  const mode = choose.pick(modes)
  const made = new MergeStatements(choose, mode !== 'simple').statement()
  return { ...made, mode, inTransaction: choose.chance(0.3) }
}

async function run(target: Parameters<typeof ask>[0], one: Asked): Promise<Answer> {
  if (one.inTransaction) await ask(target, 'begin', 'simple')
  const answer = await ask(target, one.sql, one.mode, one.parameters)
  if (one.inTransaction) await ask(target, 'rollback', 'simple')
  return answer
}

const FLOAT8 = 701

/** A float to ten digits: sums of floats depend on the order of their parts; −0 and 0 are equal, and either may stand. */
function rounded(text: string, mode: Mode, type: number): string {
  if (mode !== 'extended binary')
    return Number(text)
      .toPrecision(10)
      .replace(/^-0\.0*$/, '0')
  const bytes = Buffer.from(text, 'hex')
  const value = type === FLOAT8 ? bytes.readDoubleBE() : bytes.readFloatBE()
  return (value + 0).toPrecision(10)
}

function rowsOf(answer: Answer, one: Asked): string[] {
  const types = answer.columns.map((column) => Number(column.split(':').at(-1)))
  const rows = answer.rows.map((row) =>
    JSON.stringify(
      row.map((value, at) => {
        const type = types[at]!
        const isFloat = type === FLOAT8 || type === 700
        return isFloat && value !== null ? rounded(value, one.mode, type) : value
      }),
    ),
  )
  return one.order === 'total' ? rows : rows.sort()
}

const shown = (answer: Answer, one: Asked): string =>
  answer.error
    ? `${answer.error.sqlstate} ${answer.error.message}`
    : [answer.tag, answer.columns.join(' '), ...rowsOf(answer, one)].join('\n')

class Tally {
  readonly wrong: string[] = []
  readonly #answered = new Map<string, number>()
  readonly #refused = new Map<string, number>()
  #all = 0
  #good = 0

  note(at: number, one: Asked, direct: Answer, over: Answer): void {
    this.#all++
    const isRefused = over.error?.sqlstate === '0A000' && direct.error?.sqlstate !== '0A000'
    const isSame = direct.error
      ? direct.error.sqlstate === over.error?.sqlstate
      : shown(direct, one) === shown(over, one)
    if (isRefused) {
      const why = `${one.family}: ${over.error!.message}`
      this.#refused.set(why, (this.#refused.get(why) ?? 0) + 1)
    } else if (isSame) {
      this.#good++
      this.#answered.set(one.family, (this.#answered.get(one.family) ?? 0) + 1)
    } else {
      this.wrong.push(
        [
          `statement ${at}, ${one.mode}${one.inTransaction ? ' in a transaction' : ''}: ${one.sql}`,
          `parameters ${one.parameters.map(({ type, format, bytes }) => `${type}/${format}/${bytes?.toString(format ? 'hex' : 'utf8')}`).join(' ')}`,
          `PostgreSQL: ${shown(direct, one).slice(0, 1500)}`,
          `over shards: ${shown(over, one).slice(0, 1500)}`,
        ].join('\n'),
      )
    }
  }

  get share(): number {
    return this.#good / this.#all
  }

  family(name: string): number {
    return this.#answered.get(name) ?? 0
  }

  print(): void {
    console.log(`seed ${seed}: ${this.#all} statements, ${this.#good} answered`)
    console.table(Object.fromEntries(this.#answered))
    console.table(Object.fromEntries(this.#refused))
  }
}

describe('SELECTs merged over four shards', () => {
  const oracle = useOracle({
    setupSql: `create schema mrg; set search_path to mrg; ${schemaSql}; ${rowsSql(new Chooser(7), 260)}`,
    shardSql: `create schema mrg; set search_path to mrg; ${schemaSql}`,
    tables: tableNames,
    shards: 4,
    sharding: shardingToml,
    searchPath: 'mrg',
    general: ['cross_shard_gather = "off"'],
  })

  it(
    'D5, D119, D120, D121, D122, D123, D124, D125, D126, D127, D128, D129, D130, D134: answers as one PostgreSQL',
    async () => {
      const { plain, sharded, served } = oracle()
      const tally = new Tally()
      for (let at = 0; at < count; at++) {
        const one = asked(at)
        tally.note(at, one, await run(plain, one), await run(sharded, one))
      }
      tally.print()
      if (process.env['PGSHARD_WRONG'])
        writeFileSync(process.env['PGSHARD_WRONG'], tally.wrong.join('\n\n'))
      expect(tally.wrong.slice(0, 10).join('\n\n')).toBe('')
      expect(served.program.stderr).not.toMatch(/internal error/i)
      expect(tally.share).toBeGreaterThan(0.85)
      for (const family of [
        'order',
        'limit',
        'ties',
        'distinct',
        'distinct on',
        'group',
        'aggregates',
        'join',
      ]) {
        expect(tally.family(family), family).toBeGreaterThan(count / 30)
      }
    },
    bySize(120_000, 3_600_000),
  )
})
