/**
 * Generated reads that no shard can answer alone, over four shards and on one PostgreSQL, in three protocols, inside and
 * outside of transactions: the same answer, or a refusal with 0A000. Reads that must be answered are counted.
 */
import { describe, expect, it } from 'vitest'
import { Chooser } from '../support/arbitraries/chooser.js'
import { bySize } from '../support/test-size.js'
import { type Answer, type AskedParameter, ask, asMultiset, type Mode, modes } from './ask.js'
import { rowsSql, StatementMaker, schemaOf, tableNames } from './gather-statements.js'
import { useOracle } from './targets.js'

const seed = Number(process.env['PGSHARD_SEED'] ?? bySize(20261130, Date.now() % 1_000_000_000))
const count = Number(process.env['PGSHARD_STATEMENTS'] ?? bySize(160, 10_000))

/** Where to begin, to look at one again. */
const first = Number(process.env['PGSHARD_FIRST'] ?? 0)

const schema = schemaOf('en-x-icu')

interface Asked {
  readonly sql: string
  readonly mode: Mode
  readonly parameters: readonly AskedParameter[]
  readonly isOrdered: boolean
  readonly begin: string | undefined
}

function made(at: number): Asked {
  const choose = new Chooser(seed + at * 7919)
  const mode = choose.pick(modes)
  const maker = new StatementMaker(choose, mode !== 'simple')
  const begin = choose.pick([undefined, undefined, 'begin', 'begin read only'])
  return { ...maker.statement(), mode, parameters: maker.parameters, begin }
}

async function run(target: Parameters<typeof ask>[0], one: Asked): Promise<Answer> {
  if (one.begin !== undefined) await ask(target, one.begin, 'simple')
  const answer = await ask(target, one.sql, one.mode, one.parameters)
  if (one.begin !== undefined) await ask(target, 'rollback', 'simple')
  return answer
}

/**
 * Grouping sets over joined columns: before 18 PostgreSQL takes columns that a join makes equal for equal still when a set
 * has left one of them out, and may drop ORDER BY terms for it. Which plan does so is chance.
 */
const isOrdered = ({ isOrdered, sql }: Asked): boolean =>
  isOrdered && !/\bgroup by (?:cube|rollup|grouping sets)\b/.test(sql)

const rowsOf = (answer: Answer, one: Asked): string[] =>
  isOrdered(one) ? answer.rows.map((row) => JSON.stringify(row)) : asMultiset(answer.rows)

const shown = (answer: Answer, one: Asked): string =>
  answer.error
    ? `${answer.error.sqlstate} ${answer.error.message}`
    : [answer.tag, answer.columns.join(' '), ...rowsOf(answer, one)].join('\n')

/** What became of the statements. */
class Tally {
  readonly wrong: string[] = []
  readonly #refused = new Map<string, number>()
  #answered = 0
  #failed = 0

  note(at: number, one: Asked, direct: Answer, over: Answer): void {
    if (over.error?.sqlstate === '0A000' && direct.error?.sqlstate !== '0A000') {
      const { message } = over.error
      this.#refused.set(message, (this.#refused.get(message) ?? 0) + 1)
    } else if (direct.error && over.error?.sqlstate === direct.error.sqlstate) this.#failed++
    else if (shown(direct, one) === shown(over, one)) this.#answered++
    else this.wrong.push(report(at, one, direct, over))
  }

  /** Of those that PostgreSQL answers. */
  get share(): number {
    return this.#answered / (count - this.#failed)
  }

  print(): void {
    const refused = [...this.#refused.values()].reduce((a, b) => a + b, 0)
    console.log(
      `seed ${seed}: ${count} statements, ${this.#answered} answered, ${this.#failed} failed on PostgreSQL too, ${refused} refused, ${this.wrong.length} wrong`,
      ...(refused > 0 ? [[...this.#refused]] : []),
    )
  }
}

const report = (at: number, one: Asked, direct: Answer, over: Answer): string =>
  [
    `statement ${at}, ${one.mode}, ${one.begin ?? 'alone'}: ${one.sql}`,
    `  PostgreSQL: ${shown(direct, one).slice(0, 600)}`,
    `  pgshard:    ${shown(over, one).slice(0, 600)}`,
  ].join('\n')

describe('reads that are finished over rows of several shards', () => {
  const oracle = useOracle({
    setupSql: `create schema gen; set search_path to gen; ${schema}; ${rowsSql}`,
    shardSql: `create schema gen; set search_path to gen; ${schema}`,
    tables: tableNames,
    shards: 4,
    sharding: `${['acct', 'move']
      .map((name) => `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "k"`)
      .join('\n')}\n[[omnisharded_tables]]\ndatabase = "app"\ntables = ["kind"]`,
    searchPath: 'gen',
  })

  it(
    'D117, D132: generated joins, windows, set operations and subqueries answer as one PostgreSQL',
    async () => {
      const { plain, sharded, served } = oracle()
      const tally = new Tally()
      for (let at = first; at < first + count; at++) {
        const one = made(at)
        const direct = await run(plain, one)
        tally.note(at, one, direct, await run(sharded, one))
      }
      tally.print()
      expect(tally.wrong.slice(0, 8).join('\n\n')).toBe('')
      expect(served.program.stderr).not.toMatch(/internal error/i)
      expect(tally.share).toBeGreaterThan(0.97)
    },
    bySize(120_000, 3_600_000),
  )
})
