/**
 * The steps of `bench init`, with the letters of pgbench -I, as SQL on one node.
 * Source followed: initCreateTables, createPartitions, initGenerateData*, initVacuum, initCreatePKeys, initCreateFKeys in pgbench.c.
 */
import type pg from 'pg'
import { type Clock, systemClock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import { openCopyIn } from '../../pg/copy-in.js'
import { quoteName } from '../../pg/sql-names.js'
import type { Conninfo } from '../../topology/conninfo.js'

/** d drop, t create tables, g generate here, G generate in the server, v vacuum, p primary keys, f foreign keys. */
export type InitStep = 'd' | 't' | 'g' | 'G' | 'v' | 'p' | 'f'

export interface InitOptions {
  readonly conninfo: Conninfo
  readonly scale: number
  readonly fillfactor: number
  readonly unlogged: boolean
  /** In this order. */
  readonly steps: readonly InitStep[]
  /** Parts of pgbench_accounts; 0: it is not partitioned. */
  readonly partitions: number
  readonly partitionMethod: 'range' | 'hash'
  readonly tablespace?: string
  readonly indexTablespace?: string
  /** Progress of the generation every 5 s instead of every 100,000 rows. */
  readonly quiet: boolean
}

export interface InitTools {
  readonly clock?: Clock
  /** A line for stderr. */
  say(line: string): void
  readonly signal?: AbortSignal
}

const letters = 'dtgGvpf'

const isStep = (letter: string): letter is InitStep => letters.includes(letter)

/** Steps in the order written; blanks are allowed. @throws USAGE */
export function readSteps(text: string): InitStep[] {
  if (text === '')
    throw engineError('BENCH_USAGE', { message: 'no initialization steps specified' })
  return [...text.replaceAll(' ', '')].map((letter) => {
    if (isStep(letter)) return letter
    throw engineError('BENCH_USAGE', {
      message: `unrecognized initialization step "${letter}"; allowed step characters are: "${letters}"`,
    })
  })
}

/** What pgbench calls them in its last line. */
export const stepNames: Readonly<Record<InitStep, string>> = {
  d: 'drop tables',
  t: 'create tables',
  g: 'client-side generate',
  G: 'server-side generate',
  v: 'vacuum',
  p: 'primary keys',
  f: 'foreign keys',
}

const startLines: Readonly<Record<InitStep, string>> = {
  d: 'dropping old tables...',
  t: 'creating tables...',
  g: 'generating data (client-side)...',
  G: 'generating data (server-side)...',
  v: 'vacuuming...',
  p: 'creating primary keys...',
  f: 'creating foreign keys...',
}

/** Runs one step on one node. */
export async function runStep(
  step: InitStep,
  client: pg.Client,
  options: InitOptions,
  tools: InitTools,
): Promise<void> {
  tools.say(startLines[step])
  if (step === 'g') return await generateHere(client, options, tools)
  if (step === 't' && options.partitions > 0)
    tools.say(`creating ${options.partitions} partitions...`)
  for (const statement of statementsOf(step, options)) await adminQuery(client, statement)
}

function statementsOf(step: Exclude<InitStep, 'g'>, options: InitOptions): readonly string[] {
  switch (step) {
    case 'd':
      return [`drop table if exists ${tables.join(', ')}`]
    case 't':
      return createStatements(options)
    case 'G':
      return generateStatements(options)
    case 'v':
      return tables.map((table) => `vacuum analyze ${table}`)
    case 'p':
      return keyStatements.map((statement) => statement + indexPlace(options))
    case 'f':
      return foreignKeyStatements
  }
}

export const accountsPerBranch = 100_000
const tellersPerBranch = 10
const bigScale = 20_000
const chunkBytes = 128 * 1024

const tables = ['pgbench_accounts', 'pgbench_branches', 'pgbench_history', 'pgbench_tellers']

const place = ({ tablespace }: InitOptions): string =>
  tablespace === undefined ? '' : ` tablespace ${quoteName(tablespace)}`

const indexPlace = ({ indexTablespace }: InitOptions): string =>
  indexTablespace === undefined ? '' : ` using index tablespace ${quoteName(indexTablespace)}`

function createStatements(options: InitOptions): string[] {
  const { scale, fillfactor, unlogged, partitions, partitionMethod } = options
  const aid = scale >= bigScale ? 'bigint' : 'int'
  const create = unlogged ? 'create unlogged table' : 'create table'
  const there = place(options)
  const filled = ` with (fillfactor=${fillfactor})${there}`
  const accounts = partitions > 0 ? ` partition by ${partitionMethod} (aid)${there}` : filled
  return [
    `${create} pgbench_history(tid int,bid int,aid ${aid},delta int,mtime timestamp,filler char(22))${there}`,
    `${create} pgbench_tellers(tid int not null,bid int,tbalance int,filler char(84))${filled}`,
    `${create} pgbench_accounts(aid ${aid} not null,bid int,abalance int,filler char(84))${accounts}`,
    `${create} pgbench_branches(bid int not null,bbalance int,filler char(88))${filled}`,
    ...partitionStatements(options, create, filled),
  ]
}

function partitionStatements(options: InitOptions, create: string, filled: string): string[] {
  const { scale, partitions, partitionMethod } = options
  const size = Math.floor((accountsPerBranch * scale + partitions - 1) / partitions)
  return Array.from({ length: partitions }, (_, i) => {
    const low = i === 0 ? 'minvalue' : String(i * size + 1)
    const high = i + 1 < partitions ? String((i + 1) * size + 1) : 'maxvalue'
    const values =
      partitionMethod === 'range'
        ? `from (${low}) to (${high})`
        : `with (modulus ${partitions}, remainder ${i})`
    return `${create} pgbench_accounts_${i + 1} partition of pgbench_accounts for values ${values}${filled}`
  })
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
  const frozen = options.partitions > 0 ? '' : ' with (freeze on)'
  const copy = openCopyIn(client, `copy pgbench_accounts from stdin${frozen}`)
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

const emptyStatements = (scale: number): string[] => [
  'begin',
  `truncate table ${tables.join(', ')}`,
  `insert into pgbench_branches(bid,bbalance) select bid, 0 from generate_series(1, ${scale}) as bid`,
  `insert into pgbench_tellers(tid,bid,tbalance) select tid, (tid - 1) / ${tellersPerBranch} + 1, 0 from generate_series(1, ${scale * tellersPerBranch}) as tid`,
]

const generateStatements = ({ scale }: InitOptions): string[] => [
  ...emptyStatements(scale),
  `insert into pgbench_accounts(aid,bid,abalance,filler) select aid, (aid - 1) / ${accountsPerBranch} + 1, 0, '' from generate_series(1, ${scale * accountsPerBranch}) as aid`,
  'commit',
]

async function generateHere(
  client: pg.Client,
  options: InitOptions,
  tools: InitTools,
): Promise<void> {
  for (const statement of emptyStatements(options.scale)) await adminQuery(client, statement)
  await copyAccounts(client, options, tools)
  await adminQuery(client, 'commit')
}
