/**
 * Where a job stands, in pgshard.copy_checkpoint of each shard. The rows are there on all shards before the first batch; a
 * batch moves its shard's row in its own transaction, so that what is committed and what is noted cannot differ. At the end
 * every row is marked done on all shards before the first is removed: a crash in between does not make the job new again.
 */
import type pg from 'pg'
import { engineError } from '../../errors/engine-error.js'
import { adminQuery, inTransaction, type TextRow } from '../../pg/admin-query.js'
import { checkpointTable, SCHEMA_LOCK } from '../../setup/schema-text.js'
import { differenceOf, type InputIdentity } from '../input/input-identity.js'
import type { SeenMark } from '../input/seen-bytes.js'
import type { ShardClients } from '../shards/shard-clients.js'
import type { CopyJob, JobPart } from './copy-job.js'

/** How far the shards have come with one part; by index of the shard. */
export interface PartState {
  readonly lastRow: number[]
  readonly written: number[]
  /** What had been read of standard input when rows were committed. */
  readonly seen: readonly SeenMark[]
}

export interface JobStart {
  readonly parts: readonly JobPart[]
  readonly states: readonly PartState[]
  /** All is loaded already; only the rows of the table are left to be removed. */
  readonly isDone: boolean
  /** Shards on which the table was made. */
  readonly made: number
}

const text = (value: string): string => `'${value.replaceAll("'", "''")}'`

export class Checkpoints {
  readonly #clients: ShardClients
  readonly #urls: readonly string[]
  readonly #job: CopyJob

  constructor(clients: ShardClients, urls: readonly string[], job: CopyJob) {
    this.#clients = clients
    this.#urls = urls
    this.#job = job
  }

  /** @throws COPY_UNFINISHED, COPY_RESUME_NOTHING, COPY_RESUME_OTHER, COPY_CHECKPOINT_LOST, before anything is written */
  async start(isResume: boolean): Promise<JobStart> {
    const found = await this.#each((client) => this.#read(client))
    const isDone = found.some((rows) => rows.some(({ done }) => done === 't'))
    const kept = found.find((rows) => rows.length > 0)
    if (kept !== undefined && !isResume)
      throw engineError('COPY_UNFINISHED', { table: this.#job.table })
    if (kept === undefined && isResume)
      throw engineError('COPY_RESUME_NOTHING', { table: this.#job.table })
    if (kept !== undefined) this.#compare(kept)
    const parts = kept === undefined ? this.#job.parts : kept.map(toPart)
    if (isDone) return { parts, isDone, states: [], made: 0 }
    const isLost = found.some((rows) => rows.length !== parts.length)
    if (isLost && found.some((rows) => rows.some((row) => Number(row['last_row']) > 0)))
      throw engineError('COPY_CHECKPOINT_LOST', { table: this.#job.table })
    const made = isLost ? await this.#each((client) => this.#make(client, parts)) : []
    return {
      parts,
      isDone,
      made: made.filter(Boolean).length,
      states: parts.map((_, part) => ({
        lastRow: found.map((rows) => Number(rows[part]?.['last_row'] ?? 0)),
        written: found.map((rows) => Number(rows[part]?.['rows_written'] ?? 0)),
        seen: found.flatMap((rows) => seenOf(rows[part])),
      })),
    }
  }

  /** Keeps the shard's row from others until the transaction ends. */
  lockSql(part: number): string {
    return `select 1 from pgshard.copy_checkpoint where ${this.#where(part)} for update`
  }

  /** Moves a shard's row, if it stands where we left it: answers with one row then. */
  moveSql(
    part: number,
    move: { readonly from: number; readonly to: number; readonly rows: number },
    seen: SeenMark | undefined,
  ): string {
    const { from, to, rows } = move
    const input = seen === undefined ? '' : `, input = input || ${text(JSON.stringify({ seen }))}`
    return `update pgshard.copy_checkpoint set last_row = ${to}, rows_written = rows_written + ${rows},
      changed_at = now()${input} where ${this.#where(part)} and last_row = ${from} returning 1`
  }

  /** Removes the job's rows, and the table when it was made here and is empty. */
  async finish(): Promise<void> {
    const job = `job = ${text(this.#job.id)}`
    const mark = `update pgshard.copy_checkpoint set input = input || '{"done": true}' where ${job}`
    await this.#each(async (client) => {
      if (await hasTable(client)) await adminQuery(client, mark)
    })
    await this.#each((client) => this.#remove(client))
  }

  /** Removes the rows of a job that has loaded nothing: neither has another run of it. */
  async forget(): Promise<void> {
    const found = await this.#each((client) => this.#read(client))
    if (found.some((rows) => rows.some((row) => Number(row['last_row']) > 0))) return
    await this.#each((client) => this.#remove(client))
  }

  async #remove(client: pg.Client): Promise<void> {
    await inTransaction(client, async () => {
      await adminQuery(client, `select pg_advisory_xact_lock(${SCHEMA_LOCK})`)
      if (!(await hasTable(client))) return
      await adminQuery(
        client,
        `delete from pgshard.copy_checkpoint where job = ${text(this.#job.id)}`,
      )
      await dropIfOurs(client)
    })
  }

  /** True: the table was not there. */
  async #make(client: pg.Client, parts: readonly JobPart[]): Promise<boolean> {
    return await inTransaction(client, async () => {
      await adminQuery(client, `select pg_advisory_xact_lock(${SCHEMA_LOCK})`)
      const isThere = await hasTable(client)
      if (!isThere)
        await adminQuery(client, `create schema if not exists pgshard; ${checkpointTable}`)
      for (const part of parts) await adminQuery(client, this.#insertSql(part))
      return !isThere
    })
  }

  #insertSql(part: JobPart): string {
    const { id, table, options, mapHash } = this.#job
    const input = { ...part.identity, index: part.input, lines: part.linesBefore }
    return `insert into pgshard.copy_checkpoint
      (job, part, target_table, input, options, map_hash, range_start, range_end, last_row, rows_written)
      values (${text(id)}, ${part.part}, ${text(table)}, ${text(JSON.stringify(input))}, ${text(options)},
        ${text(mapHash)}, ${part.start}, ${part.end}, 0, 0) on conflict do nothing`
  }

  async #read(client: pg.Client): Promise<TextRow[]> {
    if (!(await hasTable(client))) return []
    // Waits for a batch that a dead process left behind on the server.
    return await adminQuery(
      client,
      `select *, coalesce(input->>'done' = 'true', false) as done from pgshard.copy_checkpoint
        where job = ${text(this.#job.id)} order by part for update`,
    )
  }

  #compare(rows: readonly TextRow[]): void {
    const { table, mapHash, options, parts } = this.#job
    const refuse = (what: string) => engineError('COPY_RESUME_OTHER', { table, what })
    for (const row of rows) {
      const was = inputOf(row)
      const is = parts.find(({ input }) => input === was.index)?.identity
      const difference = is === undefined ? 'it is missing' : differenceOf(was, is)
      if (difference !== undefined) throw refuse(`of "${was.name}" ${difference}`)
      if (row['map_hash'] !== mapHash) throw refuse('rows would go to other shards')
      if (canonical(row['options'] ?? '') !== canonical(options))
        throw refuse('the options of the data or the columns are others')
    }
  }

  #where(part: number): string {
    return `job = ${text(this.#job.id)} and part = ${part}`
  }

  async #each<T>(work: (client: pg.Client) => Promise<T>): Promise<T[]> {
    return await Promise.all(this.#urls.map((url) => this.#clients.use(url, work)))
  }
}

const hasTable = async (client: pg.Client): Promise<boolean> => {
  const [row] = await adminQuery(
    client,
    "select to_regclass('pgshard.copy_checkpoint') is not null as is_there",
  )
  return row?.['is_there'] === 't'
}

/** Without `pgshard setup` the table is ours alone; with it, it stays. */
async function dropIfOurs(client: pg.Client): Promise<void> {
  const answer = async (sql: string) => Object.values((await adminQuery(client, sql))[0] ?? {})[0]
  const isOurs = "select to_regclass('pgshard.schema_version') is null"
  const hasRows = 'select exists (select from pgshard.copy_checkpoint)'
  const hasOthers =
    "select exists (select from pg_catalog.pg_class where relnamespace = 'pgshard'::regnamespace)"
  if ((await answer(isOurs)) !== 't' || (await answer(hasRows)) === 't') return
  await adminQuery(client, 'drop table pgshard.copy_checkpoint')
  if ((await answer(hasOthers)) !== 't') await adminQuery(client, 'drop schema pgshard')
}

type StoredInput = InputIdentity & {
  readonly index: number
  readonly lines: number
  readonly seen?: SeenMark
}

const inputOf = (row: TextRow): StoredInput => JSON.parse(row['input'] ?? '{}') as StoredInput

const seenOf = (row: TextRow | undefined): SeenMark[] => {
  const seen = row === undefined ? undefined : inputOf(row).seen
  return seen === undefined ? [] : [seen]
}

function toPart(row: TextRow): JobPart {
  const { index, lines, seen: _, ...identity } = inputOf(row)
  return {
    part: Number(row['part']),
    input: index,
    identity,
    start: Number(row['range_start']),
    end: Number(row['range_end']),
    linesBefore: lines,
  }
}

/** jsonb has its own order of keys and its own spaces. */
const canonical = (json: string): string => {
  const value = JSON.parse(json === '' ? '{}' : json) as Record<string, unknown>
  return JSON.stringify(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
}
