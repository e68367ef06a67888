/**
 * Random conversations of one client over four shards and on one PostgreSQL with all rows: cursors, savepoints, pipelines,
 * portals in portions, COPY, locks, prepared statements and notices. Message for message the same answers and the same rows
 * behind them, or a refusal with 0A000, after which the transaction stands as after any error. Failures are shrunk.
 */
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Chooser } from '../../support/arbitraries/chooser.js'
import { encodeStep, type Step, stepText } from '../../support/arbitraries/session-steps.js'
import { fixedConversations } from '../../support/arbitraries/sharded-conversations.js'
import {
  countryRows,
  shardedRows,
  shardedSchema,
  shardedTables,
} from '../../support/arbitraries/sharded-statements.js'
import { shardedConversation } from '../../support/arbitraries/sharded-steps.js'
import { runCli } from '../../support/run-cli.js'
import { type ServeSetup, startServe, writeServeConfig } from '../../support/serve.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { SessionClient, type SessionTarget } from '../session-client.js'
import { shrink } from '../session-shrink.js'

const SHARDS = 4
const KEYS = Array.from({ length: 14 }, (_, i) => i + 1)
const seed = Number(process.env['PGSHARD_SEED'] ?? bySize(20261130, Date.now() % 1_000_000_000))
const count = Number(process.env['PGSHARD_SCENARIOS'] ?? bySize(60, 6000))
const MOST_FAILURES = Number(process.env['PGSHARD_FAILURES'] ?? 3)

const sharding = [
  ...shardedTables.map(
    (name) => `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "k"`,
  ),
  '[[omnisharded_tables]]\ndatabase = "app"\ntables = ["country"]',
].join('\n')

interface Side {
  readonly target: SessionTarget
  /** Past the proxy: each database with what makes it as new. */
  readonly databases: readonly { readonly client: pg.Client; readonly reset: string }[]
  /** Where DDL goes. */
  readonly admin: pg.Client
}

describe('conversations over four shards', () => {
  const postgres = usePostgres({
    version: 15,
    settings: { max_prepared_transactions: '64', max_connections: '200' },
  })
  let plain: Side
  const proxied: Side[] = []
  const clients: pg.Client[] = []
  const refusals = new Map<string, number>()
  /** One of each shard. */
  let ownKeys: number[] = []

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const make = async () => {
      const database = await postgres().createDatabase()
      const client = await postgres().connect(0, database)
      await client.query(shardedSchema)
      return { database, client }
    }
    const one = await make()
    const all = `${insertsOf(() => true)}; ${resetCountry}`
    plain = {
      target: { port, database: one.database },
      databases: [{ client: one.client, reset: all }],
      admin: one.client,
    }
    for (const size of [3]) {
      const shards = []
      for (let i = 0; i < SHARDS; i++) shards.push(await make())
      const setup: ServeSetup = {
        shards: shards.map(({ database }) => ({ host, port, database })),
        tables: sharding,
        general: [
          `default_pool_size = ${size}`,
          'min_pool_size = 0',
          'checkout_timeout = 20000',
          'cross_shard_writes = "two_phase"',
        ],
      }
      const files = writeServeConfig(setup)
      const ready = await runCli(['setup', '-c', files.configPath, '-u', files.usersPath])
      if (ready.code !== 0) throw new Error(`setup failed: ${ready.stderr}`)
      const served = await startServe(setup)
      const admin = await served.connect()
      clients.push(admin)
      const homes = await homesOf(admin, shards)
      ownKeys = shards.map((_, shard) => KEYS.find((k) => homes.get(String(k)) === shard)!)
      const databases = shards.map(({ client }, shard) => ({
        client,
        reset: `${insertsOf((k) => homes.get(k) === shard)}; ${resetCountry}`,
      }))
      proxied.push({ target: { port: served.port, database: 'app' }, databases, admin })
    }
  })
  afterAll(() => Promise.all(clients.map((client) => client.end().catch(() => undefined))))

  it.each(fixedConversations)('D80, D82: %s', async (_, stepsFor) => {
    const seen = new Map<string, number>()
    const [a, b, c, d] = ownKeys
    const steps = stepsFor(a!, b!, c!, d!)
    expect(await compare(plain, proxied[0]!, steps, seen)).toBeUndefined()
    expect([...seen]).toEqual([])
  })

  it('D60, D80, D82: are answered as by one PostgreSQL', async () => {
    const failures: string[] = []
    for (let at = 0; at < count && failures.length < MOST_FAILURES; at++) {
      const through = proxied[at % proxied.length]!
      const steps = shardedConversation(new Chooser(seed + at), KEYS)
      const difference = await compare(plain, through, steps, refusals)
      if (difference === undefined) continue
      const small = await shrink(
        { startup: {}, steps },
        async (candidate) => (await compare(plain, through, candidate.steps)) !== undefined,
      )
      const shown = (await compare(plain, through, small.steps)) ?? difference
      failures.push(`seed ${seed + at}\n${shown}`)
    }
    if (process.env['PGSHARD_TALLY']) console.log([...refusals].sort((a, b) => b[1] - a[1]))
    expect(failures.join('\n\n')).toBe('')
  })
})

const resetCountry =
  'delete from country; insert into country values ' +
  countryRows.map((row) => `(${row.split('\t').map((text) => `'${text}'`)})`).join(', ')

/** Empties the tables and fills them with the rows whose key `takes` accepts. */
function insertsOf(takes: (key: string) => boolean): string {
  const parts = ["select setval('counter', 1, false)"]
  // one shard stays empty: the keys that lie there are only written
  for (const table of shardedTables) {
    parts.push(`delete from ${table}`)
    const rows = (shardedRows(KEYS)[table] ?? []).filter((row) => takes(row.split('\t')[0]!))
    if (rows.length === 0) continue
    const values = rows.map(
      (row) => `(${row.split('\t').map((text) => (text === '\\N' ? 'null' : `'${text}'`))})`,
    )
    parts.push(`insert into ${table} values ${values.join(', ')}`)
  }
  return `set client_min_messages to warning; ${parts.join('; ')}`
}

/** On which shard each key lies. */
async function homesOf(
  admin: pg.Client,
  shards: readonly { readonly client: pg.Client }[],
): Promise<Map<string, number>> {
  for (const k of ['null', ...KEYS]) await admin.query(`insert into loose (k) values (${k})`)
  const homes = new Map<string, number>()
  for (const [shard, { client }] of shards.entries()) {
    const { rows } = await client.query('select k from loose')
    for (const { k } of rows) homes.set(k === null ? '\\N' : String(k), shard)
  }
  return homes
}

const alters = (steps: readonly Step[]): boolean =>
  steps.some((step) => /\b(?:alter|create|drop)\b/.test(stepText(step)))

/** The differing step as text; undefined when there is none. */
async function compare(
  plain: Side,
  through: Side,
  steps: readonly Step[],
  refusals?: Map<string, number>,
): Promise<string | undefined> {
  for (const { databases } of [plain, through])
    await Promise.all(databases.map(({ client, reset }) => client.query(reset)))
  const talk = await Conversation.open(plain.target, through.target)
  const said: string[] = []
  let difference: string | undefined
  try {
    difference = await sayAll(talk, steps, said)
    if (difference === undefined && !talk.isOver) difference = await differentRows(plain, through)
  } finally {
    talk.end()
  }
  for (const one of talk.refused) refusals?.set(one, (refusals.get(one) ?? 0) + 1)
  if (alters(steps)) for (const { admin } of [plain, through]) await admin.query(freshTables)
  return difference === undefined ? undefined : `${said.join('\n')}\n${difference}`
}

async function sayAll(
  talk: Conversation,
  steps: readonly Step[],
  said: string[],
): Promise<string | undefined> {
  for (const step of steps) {
    said.push(`  ${stepText(step)}`)
    const difference = await talk.say(step)
    if (difference !== undefined || talk.isOver) return difference
  }
  return talk.rollBack()
}

const freshTables =
  'drop table if exists wide; create table wide (k bigint, id int, v text); drop table if exists fresh'

async function differentRows(plain: Side, through: Side): Promise<string | undefined> {
  for (const table of [...shardedTables, 'country']) {
    const columns = table === 'ticket' ? 'k, v' : '*'
    const sql = `select row(${columns === '*' ? 't.*' : columns})::text as r from ${table} t order by 1`
    const [ofPlain, parts] = await Promise.all(
      [plain, through].map(({ databases }) =>
        Promise.all(
          databases.map(async ({ client }) =>
            (await client.query(sql)).rows.map((row: { r: unknown }) => String(row.r)),
          ),
        ),
      ),
    )
    const wanted = ofPlain?.[0] ?? []
    const given = table === 'country' ? parts : [parts!.flat().sort()]
    wanted.sort()
    for (const one of given!) {
      if (one.join('\n') === wanted.join('\n')) continue
      const missing = wanted.filter((row) => !one.includes(row))
      const extra = one.filter((row) => !wanted.includes(row))
      return `rows of ${table}: missing ${missing.join(' ')} extra ${extra.join(' ')} (${one.length} for ${wanted.length})`
    }
  }
  return undefined
}

/** The same words to both. */
class Conversation {
  readonly #plain: SessionClient
  readonly #sharded: SessionClient
  readonly refused: string[] = []
  /** After this refusal nobody can say where one PostgreSQL would be. */
  isOver = false

  private constructor(plain: SessionClient, sharded: SessionClient) {
    this.#plain = plain
    this.#sharded = sharded
  }

  static async open(plain: SessionTarget, sharded: SessionTarget): Promise<Conversation> {
    const startup = { application_name: 'talk' }
    const one = await SessionClient.open(plain, startup)
    const other = await SessionClient.open(sharded, startup)
    return new Conversation(one.client, other.client)
  }

  async say(step: Step): Promise<string | undefined> {
    const bytes = encodeStep(step)
    const readies = step.filter(({ kind }) => kind === 'query' || kind === 'sync').length
    const before = this.#sharded.status
    this.#sharded.send(bytes)
    const given = await this.#sharded.until(readies, 8000)
    const refusal = given.find((line) => isRefusal(line))
    if (refusal !== undefined) {
      const line = await this.#refused(step, before, refusal, given)
      if (line !== 'compare') return line
    }
    this.#plain.send(bytes)
    const wanted = await this.#plain.until(readies, 8000)
    if (refusal !== undefined && wanted.some((line) => /^E .*C=0A000/.test(line))) {
      // both say so
    }
    // which of its faults an aborted transaction tells first, and which portals it still describes
    if (before === 'E' && this.#plain.status === 'E' && this.#sharded.status === 'E') return
    if (given.some((line) => line.startsWith('E ')) && namesStatement(step)) this.isOver = true
    // of two faults of one Bind
    const faults = [wanted, given].map((heard) => heard.find((line) => line.startsWith('E ')))
    if (faults[0]?.includes('C=42P03') && faults[1]?.includes('C=22P02')) return
    const [a, b] = [wanted, given].map((heard) => {
      return judged(heard, step)
    }) as [string[], string[]]
    if (a.join('\n') === b.join('\n')) return undefined
    return [
      'plain:',
      ...a.map((line) => `    ${line}`),
      'sharded:',
      ...b.map((line) => `    ${line}`),
    ].join('\n')
  }

  /** The refused step changes nothing, and an open transaction is as after an error. */
  async #refused(
    step: Step,
    before: string,
    refusal: string,
    given: readonly string[],
  ): Promise<string | undefined> {
    this.refused.push(
      `${/n=?/.exec('') ? '' : ''}${/M=(.*?)(?: [DHP]=|$)/.exec(refusal)?.[1]}`.slice(0, 90),
    )
    const text = stepText(step)
    const isSimple =
      given.filter((line) => line.startsWith('Z')).length === 1 &&
      !/\b(?:begin|commit|rollback|end|savepoint|release|start|declare|prepare|deallocate)\b/.test(
        text,
      ) &&
      !step.some((one) => one.kind === 'parse' && one.name !== '')
    const after = this.#sharded.status
    const legal = before === 'I' ? 'I' : 'E'
    if (isSimple && after !== legal)
      return `refused, and the transaction is ${after} after ${before}: ${given.join('\n')}`
    if (!isSimple && !(step.length === 1 && after === legal && !/;/.test(text))) {
      this.isOver = true
      return undefined
    }
    if (before === 'T') {
      this.#plain.send(encodeStep([{ kind: 'query', sql: 'select 1/0' }]))
      await this.#plain.until(1, 8000)
    }
    return undefined
  }

  async rollBack(): Promise<string | undefined> {
    return this.#plain.status === 'I' ? undefined : this.say([{ kind: 'query', sql: 'rollback' }])
  }

  end(): void {
    this.#plain.end()
    this.#sharded.end()
  }
}

/** A statement whose Parse goes well is there although its Bind fails; ours is not when no server was asked (docs/limits.md). */
const namesStatement = (step: Step): boolean =>
  step.some((one) => one.kind === 'parse' && one.name !== '')

const isRefusal = (line: string): boolean => /^E .*C=0A000/.test(line)

/**
 * Rows without an order, notices and parameters are sorted where they stand. Of an error code and message are compared, and
 * not what its statement gave before it: one PostgreSQL comes to the bad row in its own order.
 */
function judged(heard: readonly string[], step: Step): string[] {
  const isOrdered = ordered(step)
  const lines: string[] = []
  for (const line of runs(noticesFirst(heard), isOrdered).map(told)) {
    if (line.startsWith('E ')) while (/^[123tDdTHn]/.test(lines.at(-1) ?? '')) lines.pop()
    lines.push(line)
  }
  return lines
}

/** Notices of several shards come when they come: they count for their ReadyForQuery. */
function noticesFirst(heard: readonly string[]): string[] {
  const lines: string[] = []
  let rest: string[] = []
  for (const line of heard) {
    if (line.startsWith('N ')) lines.push(line)
    else rest.push(line)
    if (!line.startsWith('Z')) continue
    lines.push(...rest)
    rest = []
  }
  return [...lines, ...rest]
}

const told = (line: string): string =>
  line.startsWith('N ')
    ? line.replace(/ W=.*$/s, '')
    : line.startsWith('E ')
      ? line.replace(/ (?:[DHPpqWstcdn]=).*$/s, '').replace(/ \(shard \d+ of \d+\)/, '')
      : line

function runs(heard: readonly string[], isOrdered: boolean): string[] {
  const lines: string[] = []
  let run: string[] = []
  let letter = ''
  const close = () => {
    lines.push(...(letter === 'S' || letter === 'N' || !isOrdered ? run.sort() : run))
    run = []
  }
  for (const line of heard) {
    if (line[0] !== letter) {
      close()
      letter = line[0]!
    }
    if ('SNDd'.includes(letter)) run.push(line)
    else lines.push(line)
  }
  close()
  return lines
}

const ordered = (step: Step): boolean =>
  step
    .flatMap((one) => ('sql' in one ? one.sql.split(';') : []))
    .every((sql) => !/select|returning|table|copy/.test(sql) || /order by/.test(sql))
