/**
 * `bench init`: the standard tables on every node of a connection string, each generated on its own, as pgbench -i.
 * Source followed: initCreateTables, initGenerateDataClientSide, initCreatePKeys in pgbench.c.
 */
import type pg from 'pg'
import { type Clock, systemClock } from '../base/clock.js'
import { adminQuery, closePg } from '../pg/admin-query.js'
import { connectPg, eachHost } from '../pg/connect.js'
import { openCopyIn } from '../pg/copy-in.js'
import type { Conninfo } from '../topology/conninfo.js'
import { nodesOf } from './run-plan.js'

export interface InitOptions {
  readonly conninfo: Conninfo
  readonly scale: number
  readonly fillfactor: number
  readonly unlogged: boolean
  readonly foreignKeys: boolean
  readonly vacuum: boolean
  /** Progress of the generation every 5 s instead of every 100,000 rows. */
  readonly quiet: boolean
}

export interface InitTools {
  readonly clock?: Clock
  /** A line for stderr. */
  say(line: string): void
  readonly signal?: AbortSignal
}

/** Seconds of each step; absent when it was not run. */
export interface InitReport {
  readonly node: string
  readonly accounts: number
  readonly total_s: number
  readonly drop_s: number
  readonly create_s: number
  readonly generate_s: number
  readonly vacuum_s?: number
  readonly primary_keys_s: number
  readonly foreign_keys_s?: number
}

const accountsPerBranch = 100_000
const tellersPerBranch = 10
const bigScale = 20_000
const chunkBytes = 128 * 1024

const tables = ['pgbench_accounts', 'pgbench_branches', 'pgbench_history', 'pgbench_tellers']

function createStatements({ scale, fillfactor, unlogged }: InitOptions): string[] {
  const aid = scale >= bigScale ? 'bigint' : 'int'
  const create = unlogged ? 'create unlogged table' : 'create table'
  const filled = ` with (fillfactor=${fillfactor})`
  return [
    `${create} pgbench_history(tid int,bid int,aid ${aid},delta int,mtime timestamp,filler char(22))`,
    `${create} pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84))${filled}`,
    `${create} pgbench_accounts(aid ${aid} not null,bid int,abalance int,filler char(84))${filled}`,
    `${create} pgbench_branches(bid int not null,bbalance int,filler char(88))${filled}`,
  ]
}

const keyStatements = [
  'alter table pgbench_branches add primary key (bid)',
  'alter table pgbench_tellers add primary key (tid)',
  'alter table pgbench_accounts add primary key (aid)',
]

const foreignKeyStatements = [
  'alter table pgbench_tellers add constraint pgbench_tellers_bid_fkey foreign key (bid) references pgbench_branches',
  'alter table pgbench_accounts add constraint pgbench_accounts_bid_fkey foreign key (bid) references pgbench_branches',
  'alter table pgbench_history add constraint pgbench_history_bid_fkey foreign key (bid) references pgbench_branches',
  'alter table pgbench_history add constraint pgbench_history_tid_fkey foreign key (tid) references pgbench_tellers',
  'alter table pgbench_history add constraint pgbench_history_aid_fkey foreign key (aid) references pgbench_accounts',
]

async function runAll(client: pg.Client, statements: readonly string[]): Promise<void> {
  for (const statement of statements) await adminQuery(client, statement)
}

/** Lines of pgbench while rows are generated. */
class GenerationProgress {
  readonly #startMs: number
  #nextRow = 100_000
  #nextMs: number
  readonly #clock: Clock
  readonly #total: number
  readonly #quiet: boolean
  readonly #say: (line: string) => void

  constructor(clock: Clock, total: number, quiet: boolean, say: (line: string) => void) {
    this.#clock = clock
    this.#total = total
    this.#quiet = quiet
    this.#say = say
    this.#startMs = clock.monotonicMs()
    this.#nextMs = this.#startMs + 5000
  }

  at(rows: number): void {
    const nowMs = this.#clock.monotonicMs()
    const isDue = this.#quiet ? nowMs >= this.#nextMs : rows >= this.#nextRow
    if (!isDue && rows < this.#total) return
    this.#nextRow = rows + 100_000
    this.#nextMs = nowMs + 5000
    const elapsedS = (nowMs - this.#startMs) / 1000
    const remainingS = (elapsedS * (this.#total - rows)) / rows
    const percent = Math.floor((100 * rows) / this.#total)
    this.#say(
      `${rows} of ${this.#total} tuples (${percent}%) done (elapsed ${elapsedS.toFixed(2)} s, remaining ${remainingS.toFixed(2)} s)`,
    )
  }
}

async function copyAccounts(
  client: pg.Client,
  options: InitOptions,
  tools: InitTools,
): Promise<void> {
  const total = accountsPerBranch * options.scale
  const clock = tools.clock ?? systemClock
  const progress = new GenerationProgress(clock, total, options.quiet, tools.say)
  const copy = openCopyIn(client, 'copy pgbench_accounts from stdin with (freeze on)')
  let text = ''
  for (let aid = 1; aid <= total; aid++) {
    // filler is the empty string, which char(84) pads
    text += `${aid}\t${Math.floor((aid - 1) / accountsPerBranch) + 1}\t0\t\n`
    if (text.length < chunkBytes && aid < total) continue
    const pending = copy.write(Buffer.from(text, 'latin1'))
    text = ''
    if (pending !== undefined) await pending
    progress.at(aid)
    if (tools.signal?.aborted) await copy.fail('interrupted')
    tools.signal?.throwIfAborted()
  }
  await copy.finish()
}

async function generate(client: pg.Client, options: InitOptions, tools: InitTools): Promise<void> {
  const { scale } = options
  await adminQuery(client, 'begin')
  await adminQuery(client, `truncate table ${tables.join(', ')}`)
  await adminQuery(
    client,
    `insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, ${scale}) as bid`,
  )
  await adminQuery(
    client,
    `insert into pgbench_tellers(tid,bid,tbalance) select tid, (tid - 1) / ${tellersPerBranch} + 1, 0 from generate_series(1, ${scale * tellersPerBranch}) as tid`,
  )
  await copyAccounts(client, options, tools)
  await adminQuery(client, 'commit')
}

async function initNode(
  node: string,
  client: pg.Client,
  options: InitOptions,
  tools: InitTools,
): Promise<InitReport> {
  const clock = tools.clock ?? systemClock
  const startMs = clock.monotonicMs()
  const timed = async (line: string, work: () => Promise<void>): Promise<number> => {
    const stepMs = clock.monotonicMs()
    tools.say(line)
    await work()
    return (clock.monotonicMs() - stepMs) / 1000
  }
  const drop_s = await timed('dropping old tables...', () =>
    runAll(client, [`drop table if exists ${tables.join(', ')}`]),
  )
  const create_s = await timed('creating tables...', () =>
    runAll(client, createStatements(options)),
  )
  const generate_s = await timed('generating data (client-side)...', () =>
    generate(client, options, tools),
  )
  const vacuum_s = options.vacuum
    ? await timed('vacuuming...', () =>
        runAll(
          client,
          tables.map((table) => `vacuum analyze ${table}`),
        ),
      )
    : undefined
  const primary_keys_s = await timed('creating primary keys...', () =>
    runAll(client, keyStatements),
  )
  const foreign_keys_s = options.foreignKeys
    ? await timed('creating foreign keys...', () => runAll(client, foreignKeyStatements))
    : undefined
  const total_s = (clock.monotonicMs() - startMs) / 1000
  const accounts = accountsPerBranch * options.scale
  const steps = { drop_s, create_s, generate_s, primary_keys_s }
  return {
    node,
    accounts,
    total_s,
    ...steps,
    ...(vacuum_s === undefined ? {} : { vacuum_s }),
    ...(foreign_keys_s === undefined ? {} : { foreign_keys_s }),
  }
}

/** pgbench's last line, with the node before it. */
export function initLine(report: InitReport): string {
  const seconds = (name: string, value: number | undefined) =>
    value === undefined ? [] : [`${name} ${value.toFixed(2)} s`]
  const steps = [
    ...seconds('drop tables', report.drop_s),
    ...seconds('create tables', report.create_s),
    ...seconds('client-side generate', report.generate_s),
    ...seconds('vacuum', report.vacuum_s),
    ...seconds('primary keys', report.primary_keys_s),
    ...seconds('foreign keys', report.foreign_keys_s),
  ]
  return `${report.node}: done in ${report.total_s.toFixed(2)} s (${steps.join(', ')}).`
}

/** One node after the other; the first that fails ends it. */
export async function initTables(options: InitOptions, tools: InitTools): Promise<InitReport[]> {
  const { nodes, indexOf } = nodesOf(options.conninfo)
  const hosts = eachHost({ ...options.conninfo, targetSessionAttrs: 'any' })
  const reports: InitReport[] = []
  for (const [i, node] of nodes.entries()) {
    const own = hosts[indexOf.indexOf(i)] as Conninfo
    if (nodes.length > 1) tools.say(`${node.name}:`)
    const client = await connectPg(own, { applicationName: 'pgshard bench init' })
    try {
      const report = await initNode(node.name, client, options, tools)
      reports.push(report)
      tools.say(initLine(report))
    } finally {
      await closePg(client)
    }
  }
  return reports
}
