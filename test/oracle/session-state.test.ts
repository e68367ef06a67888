/**
 * Random conversations of one client, on one PostgreSQL directly and through serve with pools of one, two and three
 * servers that neighbours use as well: message for message the same answers, and nothing left behind. Failures are shrunk.
 */

import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Chooser } from '../support/arbitraries/chooser.js'
import {
  freshTable,
  sessionRows,
  sessionSchema,
} from '../support/arbitraries/session-statements.js'
import {
  encodeStep,
  type Scenario,
  scenario,
  stepText,
} from '../support/arbitraries/session-steps.js'
import { startServe } from '../support/serve.js'
import { bySize } from '../support/test-size.js'
import { usePostgres } from '../support/use-postgres.js'
import { SessionClient, type SessionTarget } from './session-client.js'
import { Neighbours } from './session-neighbours.js'
import { shrink } from './session-shrink.js'

const seed = Number(process.env['PGSHARD_SEED'] ?? bySize(20260301, Date.now() % 1_000_000_000))
const count = Number(process.env['PGSHARD_SCENARIOS'] ?? bySize(60, 6000))

/** One step's answer. */
type Heard = readonly string[]

interface Side {
  readonly target: SessionTarget
  /** Past the proxy on the direct side, through it on the other: DDL that it does not see is another story. */
  readonly admin: pg.Client
  /** Through the proxy: as many as the pool has servers. */
  readonly inspectors: readonly pg.Client[]
  /** The last conversation may have altered tables. */
  isAltered: boolean
}

const poolSizes = [1, 2, 3]

describe('conversations of one client', () => {
  const postgres = usePostgres({ version: 15 })
  let direct: Side
  const proxied: { side: Side; neighbours: Neighbours }[] = []

  beforeAll(async () => {
    const { host, port } = postgres().servers[0]!
    const exists = await postgres().query("select from pg_roles where rolname = 'session_r1'")
    if (exists.length === 0) await postgres().query('create role session_r1')
    const make = async () => {
      const database = await postgres().createDatabase()
      const admin = await postgres().connect(0, database)
      await admin.query(sessionSchema)
      return { database, admin }
    }
    const plain = await make()
    direct = {
      target: { port, database: plain.database },
      admin: plain.admin,
      inspectors: [],
      isAltered: false,
    }
    for (const size of poolSizes) {
      const { database, admin } = await make()
      await admin.end()
      const served = await startServe({
        shards: [{ host, port, database }],
        general: [`default_pool_size = ${size}`, 'min_pool_size = 0', 'checkout_timeout = 20000'],
      })
      const side: Side = {
        target: { port: served.port, database: 'app' },
        admin: await served.connect(),
        inspectors: await Promise.all(Array.from({ length: size }, () => served.connect())),
        isAltered: false,
      }
      proxied.push({ side, neighbours: await Neighbours.open(side.target, 2) })
    }
  })
  afterAll(async () => {
    for (const { neighbours, side } of proxied) {
      neighbours.end()
      for (const client of [side.admin, ...side.inspectors]) await client.end()
    }
  })

  it('D47, D50, D53, D176, D177, D180, D181: are answered as directly, whoever else uses the servers', async () => {
    const failures: string[] = []
    console.log(`seed ${seed}`)
    for (let at = 0; at < count && failures.length < 3; at++) {
      const through = proxied[at % proxied.length]!
      const made = scenario(new Chooser(seed + at))
      const difference = await compare(direct, through, made, seed + at)
      if (difference === undefined) continue
      const small = await shrink(
        made,
        async (candidate) => (await compare(direct, through, candidate, seed + at)) !== undefined,
      )
      const shown = (await compare(direct, through, small, seed + at)) ?? difference
      failures.push(`seed ${seed + at}, pool of ${poolSizes[at % proxied.length]}\n${shown}`)
    }
    expect(failures.join('\n\n')).toBe('')
  })
})

/** The differing step as text; undefined when there is none. */
async function compare(
  direct: Side,
  through: { side: Side; neighbours: Neighbours },
  made: Scenario,
  seed: number,
): Promise<string | undefined> {
  const wanted = await converse(direct, made)
  const given = await converse(through.side, made, wanted, through.neighbours.with(seed))
  const at = wanted.findIndex((heard, i) => !same(heard, given[i] ?? ['(nothing)']))
  const left = await leftBehind(through.side)
  if (at < 0 && left === '') return undefined
  const lines = [`startup ${JSON.stringify(made.startup)}`]
  const steps = at < 0 ? made.steps : made.steps.slice(0, at)
  for (const step of steps) lines.push(`  ${stepText(step)}`)
  if (left !== '') lines.push(`left behind: ${left}`)
  if (at < 0) return lines.join('\n')
  lines.push('direct:', ...wanted[at]!.map((line) => `    ${line}`))
  lines.push('through serve:', ...(given[at] ?? ['(nothing)']).map((line) => `    ${line}`))
  return lines.join('\n')
}

/** What the next client of the pool finds of others: nothing, or a text. */
async function leftBehind({ inspectors }: Side): Promise<string> {
  try {
    // in transactions, so that each looks at another server
    for (const inspector of inspectors) await inspector.query('begin; select 1')
    const found: string[] = []
    for (const inspector of inspectors) {
      const { rows } = await inspector.query<{ seen: string }>(leftovers)
      found.push(...rows.map(({ seen }) => seen))
      await inspector.query('commit')
    }
    return found.join(' ')
  } catch (error) {
    return String(error)
  }
}

const leftovers = `
select name || '=' || setting as seen from pg_settings
  where source = 'session' and name not in ('application_name', 'client_encoding')
    and name not like 'my.%' and name not like 'transaction_%'
union all select 'role ' || current_user where current_user <> 'postgres' or session_user <> 'postgres'
union all select 'lock ' || objid from pg_locks
  where locktype = 'advisory' and objid <> 99 and pid = pg_backend_pid()
union all select 'temporary ' || relname from pg_class where relnamespace = pg_my_temp_schema()
union all select 'cursor ' || name from pg_cursors where name <> ''`

/** ParameterStatus that stand together have no order. */
const same = (a: Heard, b: Heard): boolean => judged(a).join('\n') === judged(b).join('\n')

/**
 * In a failed transaction, whether a Bind is refused for that or for its number of parameters depends on where it runs, and
 * so does what a statement that does not stand on that server is said to be. Of two statements with one text an error names either.
 */
function judged(heard: Heard): string[] {
  const lines = sorted(heard).map((line) =>
    line.replace(/(C=08P01 M=bind .* prepared statement) ".*" /, '$1 '),
  )
  if (!lines.includes('Z E')) return lines
  const isRefused = (line: string) => /^E .*(?:C=08P01 M=bind message supplies|C=25P02)/.test(line)
  if (!lines.some(isRefused)) return lines
  return lines
    .filter((line) => !/^[tn] ?$/.test(line))
    .map((line) => (isRefused(line) ? 'E (refused)' : line))
}

function sorted(heard: Heard): string[] {
  const lines: string[] = []
  for (let at = 0; at < heard.length; ) {
    const end = heard.findIndex((line, i) => i >= at && !line.startsWith('S '))
    const stop = end < 0 ? heard.length : end
    lines.push(...heard.slice(at, stop).sort())
    if (stop < heard.length) lines.push(heard[stop]!)
    at = stop + 1
  }
  return lines
}

/** Plays the conversation; `wanted` tells how many ReadyForQuery each step has. */
async function converse(
  side: Side,
  { startup, steps }: Scenario,
  wanted?: readonly Heard[],
  between?: (step: Step) => Promise<void>,
): Promise<Heard[]> {
  const { target, admin } = side
  const alters = steps.some(changesTable)
  if (alters || side.isAltered) await admin.query(freshTable)
  side.isAltered = alters
  // a prepared ALTER that a step executes is not seen in its text
  await admin.query(sessionRows).catch(() => admin.query(`${freshTable}; ${sessionRows}`))
  const { client, welcome } = await SessionClient.open(target, startup)
  const heard: Heard[] = [welcome]
  try {
    for (const [at, step] of steps.entries()) {
      client.send(encodeStep(step))
      heard.push(
        wanted ? await client.until(readies(wanted[at + 1]), 5000) : await counted(client, step),
      )
      if (client.isClosed) break
      await between?.({ isFree: client.status === 'I' })
      if (wanted && !same(wanted[at + 1]!, heard[at + 1]!)) break
    }
  } finally {
    client.end()
  }
  return heard
}

interface Step {
  /** The client has no transaction open. */
  readonly isFree: boolean
}

const changesTable = (step: Scenario['steps'][number]): boolean =>
  /\b(?:table|view)\b/.test(stepText(step))

const readies = (heard: Heard | undefined): number =>
  heard?.filter((line) => line.startsWith('Z')).length ?? 1

/** A Query before the Sync is skipped after an error: only then is the number of answers open. */
async function counted(client: SessionClient, step: Scenario['steps'][number]): Promise<Heard> {
  const queries = step.filter(({ kind }) => kind === 'query').length
  const syncs = step.filter(({ kind }) => kind === 'sync').length
  if (queries === 0) return client.until(syncs, 5000)
  if (syncs === 0) return client.until(1, 5000)
  return (await client.settled(60)).heard
}
