/**
 * Random schemas with random rows, and random queries over them, on one PostgreSQL and over four shards: the same answer, or
 * a refusal with 0A000. A wrong one is made smaller, by its choices and then by its rows, before it is told.
 */
import pg from 'pg'
import { beforeAll, describe, expect, it } from 'vitest'
import { bySize } from '../support/test-size.js'
import { type Answer, ask, type Mode, modes } from './ask.js'
import { Choices, shrinkChoices, shrinkList } from './random/choices.js'
import { shown, type TypeNames, typeNamesAt } from './random/compare.js'
import { FamilyTally, judge, type Verdict } from './random/families.js'
import { type MadeQuery, makeQuery } from './random/queries.js'
import { rendered } from './random/rendered.js'
import {
  collationSql,
  makeWorld,
  rowsOf,
  schemaOf,
  shardingOf,
  type Table,
  type World,
} from './random/world.js'
import { useOracle } from './targets.js'

const seed = Number(process.env['PGSHARD_SEED'] ?? bySize(20261206, Date.now() % 1_000_000_000))
const count = Number(process.env['PGSHARD_STATEMENTS'] ?? bySize(150, 10_000))
const schemas = Number(process.env['PGSHARD_SCHEMAS'] ?? bySize(4, 40))
/** Where to begin, to look at one again. */
const first = Number(process.env['PGSHARD_FIRST'] ?? 0)
const MOST_SHRUNK = 3

const worlds = Array.from({ length: schemas }, (_, number) =>
  makeWorld(new Choices(seed + 31 * number), `w${number}`),
)

interface Asked {
  readonly world: World
  readonly made: MadeQuery
  readonly mode: Mode
  readonly begin: string | undefined
}

const begins = [undefined, undefined, 'begin', 'begin isolation level repeatable read']

function askedBy(world: World, choose: Choices): Asked {
  const begin = choose.pick(begins)
  const mode = choose.pick(modes)
  return { world, made: makeQuery(choose, world), mode, begin }
}

async function run(target: Parameters<typeof ask>[0], { made, mode, begin }: Asked) {
  const { sql, parameters } = rendered(made, mode)
  if (begin !== undefined) await ask(target, begin, 'simple')
  const answer = await ask(target, sql, mode, parameters)
  if (begin !== undefined) await ask(target, 'rollback', 'simple')
  return answer
}

describe('random queries over random schemas', () => {
  const schemasSql = [collationSql, ...worlds.map(schemaOf)].join(';\n')
  const oracle = useOracle({
    setupSql: `${schemasSql};\n${worlds.map(rowsOf).join(';\n')}`,
    shardSql: schemasSql,
    tables: worlds.flatMap(({ schema, tables }) => tables.map(({ name }) => `${schema}.${name}`)),
    shards: 4,
    sharding: worlds.map(shardingOf).join('\n'),
    searchPath: 'public',
  })
  let plainNames: TypeNames
  let shardNames: TypeNames
  beforeAll(async () => {
    const { plainUrl, shardUrls } = oracle()
    plainNames = await typeNamesAt(plainUrl)
    shardNames = await typeNamesAt(shardUrls[0]!)
  })

  async function compare(one: Asked): Promise<{ verdict: Verdict; direct: Answer; over: Answer }> {
    const { plain, sharded } = oracle()
    const direct = await run(plain, one)
    const over = await run(sharded, one)
    const { isOrdered } = one.made
    const isSame = shown(direct, isOrdered, plainNames) === shown(over, isOrdered, shardNames)
    return { verdict: judge(direct, over, isSame), direct, over }
  }

  const told = (one: Asked, direct: Answer, over: Answer): string => {
    const { made, mode, begin, world } = one
    return [
      `in ${world.schema}, ${mode}, ${begin ?? 'alone'}: ${rendered(made, mode).sql}`,
      `  parameters: ${made.literals.map(({ type, text }) => `${type} ${text}`).join(', ')}`,
      `  PostgreSQL: ${shown(direct, made.isOrdered, plainNames).slice(0, 800)}`,
      `  got:        ${shown(over, made.isOrdered, shardNames).slice(0, 800)}`,
    ].join('\n')
  }

  const isWrong = async (one: Asked): Promise<boolean> => (await compare(one)).verdict === 'wrong'

  /** Takes rows of a table away on all databases, unless the case then holds no more. */
  async function shrinkRows(one: Asked, table: Table): Promise<readonly string[]> {
    const { plainUrl, shardUrls, reload } = oracle()
    const clients = [plainUrl, ...shardUrls].map((url) => new pg.Client({ connectionString: url }))
    await Promise.all(clients.map((client) => client.connect()))
    const name = `${one.world.schema}.${table.name}`
    const put = (rows: readonly (readonly (string | null)[])[]) =>
      `truncate ${name}; ${rowsOf({ ...one.world, tables: [{ ...table, rows }] })}`
    try {
      const keep = async (rows: readonly (readonly (string | null)[])[]): Promise<void> => {
        await clients[0]!.query(put(rows))
        const ids = rows.map((row) => row[0])
        await reload()
        await Promise.all(
          clients
            .slice(1)
            .map((client) => client.query(`delete from ${name} where not id = any ($1)`, [ids])),
        )
      }
      const left = await shrinkList(table.rows, async (rows) => {
        await keep(rows)
        return isWrong(one)
      })
      await keep(left)
      return left.map((row) => `(${row.join(', ')})`)
    } finally {
      await Promise.all(clients.map((client) => client.end()))
    }
  }

  async function smallest(world: World, choices: readonly number[]): Promise<string> {
    const small = await shrinkChoices(choices, (some) =>
      isWrong(askedBy(world, new Choices(some))).catch(() => false),
    )
    const one = askedBy(world, new Choices(small))
    const { sql } = rendered(one.made, one.mode)
    const named = world.tables.filter(({ name }) => new RegExp(`\\b${name}\\b`).test(sql))
    const lines: string[] = []
    for (const table of named) {
      const rows = await shrinkRows(one, table)
      const columns = table.columns.map((column) => `${column.name} ${column.type}`).join(', ')
      lines.push(`  ${table.name} (${table.kind}; ${columns}): ${rows.join(' ')}`)
    }
    const { direct, over } = await compare(one)
    return [`smallest: ${told(one, direct, over)}`, ...lines].join('\n')
  }

  const tally = new FamilyTally()
  const wrong: string[] = []
  const shrunk: string[] = []

  async function check(world: World, choices: Choices, at: number): Promise<void> {
    const one = askedBy(world, choices)
    const { verdict, direct, over } = await compare(one)
    tally.note(rendered(one.made, 'simple').sql, 'random schemas', verdict, over.error?.message)
    if (verdict !== 'wrong') return
    wrong.push(`statement ${at}: ${told(one, direct, over)}`)
    if (shrunk.length < MOST_SHRUNK) shrunk.push(await smallest(world, choices.taken))
  }

  it(
    'D117, D132: answer as one PostgreSQL, or say why they do not',
    async () => {
      const { plain, sharded, served } = oracle()
      const each = Math.ceil(count / worlds.length)
      for (const [number, world] of worlds.entries()) {
        for (const target of [plain, sharded])
          await target.query(`set search_path to ${world.schema}, public`)
        for (let at = first; at < each; at++) {
          const choices = new Choices(seed + number * 1_000_003 + at * 7919)
          await check(world, choices, at)
        }
      }
      tally.print(
        `seed ${seed}: ${each * worlds.length} queries over ${worlds.length} schemas, ${wrong.length} wrong`,
      )
      expect([...shrunk, ...wrong.slice(0, 5)].join('\n\n')).toBe('')
      expect(served.program.stderr).not.toMatch(/internal error/i)
      const all = tally.row('all')
      expect(all.failed / all.statements).toBeLessThan(0.1)
      expect(all.refused / all.templates).toBeLessThan(0.03)
    },
    bySize(120_000, 3_600_000),
  )
})
