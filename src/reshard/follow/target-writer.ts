/**
 * One source's connection to one target: batches applied in a transaction together with the source's progress,
 * so that a change is applied once however often it is read.
 */
import { engineError, toEngineError } from '../../errors/engine-error.js'
import { type HostClient, type HostTarget, openHostClient } from '../../pg/host-client.js'
import { COLUMN_TEXT } from '../../replication/change.js'
import { LSN_ZERO, type Lsn, parseLsn, printLsn } from '../../replication/lsn.js'
import { ensureProgressTable } from '../journal/journal.js'
import { type MoveTable, tableLabel } from '../move-table.js'
import { canonicalSettings, placeOf } from '../side.js'
import { quoteName } from '../sql-names.js'
import { type ApplyStatement, applyNet, applyOne, StatementNames } from './apply-statements.js'
import { type PlacedTuple, textTuple } from './array-parameter.js'
import { ChangeBatch, type RowOp } from './change-batch.js'

export interface WriterOptions {
  readonly target: HostTarget
  readonly run: string
  readonly source: number
  /** Triggers and foreign keys do not fire; the server must grant it. */
  readonly replicaRole: boolean
}

const progressSql = `INSERT INTO pgshard.reshard_progress (run, source, lsn) VALUES ($1, $2, $3)
  ON CONFLICT (run, source) DO UPDATE SET lsn = excluded.lsn`

export class TargetWriter {
  readonly batch = new ChangeBatch()
  readonly #client: HostClient
  readonly #options: WriterOptions
  readonly #names = new StatementNames()
  /** End of the last source transaction that is committed here. */
  progress: Lsn
  /** Rows of batches that had to be applied one by one. */
  singleRows = 0

  private constructor(client: HostClient, options: WriterOptions, progress: Lsn) {
    this.#client = client
    this.#options = options
    this.progress = progress
  }

  static async open(options: WriterOptions): Promise<TargetWriter> {
    const client = await openHostClient(options.target, {
      applicationName: 'pgshard apply',
      pipeline: true,
      settings: {
        ...canonicalSettings,
        plan_cache_mode: 'force_generic_plan',
        ...(options.replicaRole ? { session_replication_role: 'replica' } : {}),
      },
    })
    await ensureProgressTable(client)
    const { rows } = await client.query<{ lsn: string }>(
      'SELECT lsn::text AS lsn FROM pgshard.reshard_progress WHERE run = $1 AND source = $2',
      [options.run, options.source],
    )
    const progress = rows[0] ? parseLsn(rows[0].lsn) : LSN_ZERO
    return new TargetWriter(client, options, progress)
  }

  /**
   * Commits the batch; `upTo` (the end of the last whole source transaction) in the same transaction.
   * A batch that fails is applied again change by change in the source's order: a value that one row frees
   * and another takes needs that order.
   */
  async flush(upTo: Lsn | undefined): Promise<void> {
    if (this.batch.size === 0) return
    const statements: ApplyStatement[] = []
    for (const [table, ops] of this.batch.net()) {
      statements.push(...applyNet(table, ops, this.#names))
    }
    try {
      await this.#commit(statements, upTo)
    } catch (error) {
      if ((error as { code?: string }).code === undefined) throw this.#failure(error, undefined)
      await this.#oneByOne(upTo)
    }
    if (upTo !== undefined) this.progress = upTo
    this.batch.clear()
  }

  /** Applies changes at once, in a transaction of their own and without progress. */
  async applyNow(ops: readonly RowOp[]): Promise<void> {
    const statements = ops.flatMap((op) => applyOne(op, this.#names))
    try {
      await this.#commit(statements, undefined)
    } catch (error) {
      throw this.#failure(error, ops[0]?.table)
    }
  }

  /** Runs statements and the progress in one transaction. */
  async execute(texts: readonly string[], upTo: Lsn | undefined): Promise<void> {
    await this.#commit(
      texts.map((text) => ({ name: '', text, values: [] })),
      upTo,
    )
  }

  /** A row as it stands here, every value as text; undefined when it is not here. */
  async fetch(table: MoveTable, key: PlacedTuple): Promise<PlacedTuple | undefined> {
    const columns = table.columns.map((column, i) => `${quoteName(column.name)} AS c${i}`)
    const match = table.identity.map((column, i) => {
      const { name, type } = table.columns[column] as MoveTable['columns'][number]
      return `${quoteName(name)} = $${i + 1}::${type}`
    })
    const values = table.identity.map((column) => {
      const place = key.at[column] as number
      const { tuple } = key
      const bytes = tuple.bytes.subarray(tuple.starts[place], tuple.ends[place])
      // node-postgres sends a Buffer as binary and a string as text.
      return tuple.kinds[place] === COLUMN_TEXT ? bytes.toString('utf8') : bytes
    })
    const result = await this.#client.query({
      text: `SELECT ${columns.join(', ')} FROM ${table.sqlName} WHERE ${match.join(' AND ')}`,
      values,
      types: { getTypeParser: () => (text: string) => text } as never,
    })
    const row = result.rows[0] as Record<string, string | null> | undefined
    return row && textTuple(table.columns.map((_, i) => row[`c${i}`] ?? null))
  }

  /** Rows read in text, for work that must look at them; in the caller's order. */
  async query(text: string): Promise<(string | null)[][]> {
    const types = { getTypeParser: () => (value: string) => value } as never
    const result = await this.#client.query({ text, rowMode: 'array', types })
    return result.rows as (string | null)[][]
  }

  async close(): Promise<void> {
    await this.#client.end().catch(() => undefined)
  }

  async #oneByOne(upTo: Lsn | undefined): Promise<void> {
    let current: MoveTable | undefined
    try {
      await this.#client.query('BEGIN')
      for (const op of this.batch.log) {
        current = op.table
        for (const statement of applyOne(op, this.#names)) await this.#run(statement)
        this.singleRows++
      }
      if (upTo !== undefined) await this.#client.query(progressSql, this.#progressOf(upTo))
      await this.#client.query('COMMIT')
    } catch (error) {
      await this.#client.query('ROLLBACK').catch(() => undefined)
      throw this.#failure(error, current)
    }
  }

  async #commit(statements: readonly ApplyStatement[], upTo: Lsn | undefined): Promise<void> {
    const client = this.#client
    const answers: Promise<unknown>[] = [client.query('BEGIN')]
    for (const statement of statements) answers.push(this.#run(statement))
    if (upTo !== undefined) {
      answers.push(
        client.query({ name: 'progress', text: progressSql, values: this.#progressOf(upTo) }),
      )
    }
    // After an error COMMIT answers ROLLBACK without an error of its own: the first failure counts.
    answers.push(client.query('COMMIT'))
    for (const answer of await Promise.allSettled(answers)) {
      if (answer.status === 'rejected') throw answer.reason
    }
  }

  #run(statement: ApplyStatement): Promise<unknown> {
    const { name, text, values } = statement
    if (name === '') return this.#client.query(text)
    return this.#client.query({ name, text, values: [...values] })
  }

  #progressOf(upTo: Lsn): (string | number)[] {
    return [this.#options.run, this.#options.source, printLsn(upTo)]
  }

  #failure(error: unknown, table: MoveTable | undefined): Error {
    const { message, detail } = toEngineError(error)
    const label = table ? tableLabel(table) : [...this.batch.net()].map(([t]) => tableLabel(t))
    const where = { table: String(label), server: placeOf(this.#options.target), reason: message }
    const more = (error as { detail?: string }).detail ?? detail
    return engineError('RESHARD_APPLY', where, {
      cause: error,
      ...(more === undefined ? {} : { detail: more }),
    })
  }
}
