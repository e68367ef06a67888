/**
 * One source's connection to one target: whole source transactions, applied in one transaction together with the source's
 * progress, so that a change is applied once however often it is read. A transaction too large for one batch is sent in
 * several, which are committed together.
 */
import type { Clock } from '../../base/clock.js'
import { engineError, toEngineError } from '../../errors/engine-error.js'
import { type HostClient, type HostTarget, openHostClient } from '../../pg/host-client.js'
import { LSN_ZERO, type Lsn, parseLsn, printLsn } from '../../replication/lsn.js'
import { type CopiedPart, readCopiedOf } from '../journal/copied-parts.js'
import { ensureTargetTables } from '../journal/journal.js'
import { lockWriter } from '../journal/run-lock.js'
import { type MoveTable, tableLabel } from '../move-table.js'
import { canonicalSettings, placeOf } from '../side.js'
import { type ApplyStatement, applyNet, applyOne, StatementNames } from './apply-statements.js'
import type { PlacedTuple } from './array-parameter.js'
import { ChangeBatch, overlay } from './change-batch.js'
import { fetchRow } from './fetch-row.js'

export interface WriterOptions {
  readonly target: HostTarget
  readonly run: string
  readonly source: number
  readonly clock: Clock
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
  /** A transaction is open on the target: part of a source transaction is in it. */
  #isOpen = false

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
        // What is acknowledged to the source must survive a crash of the target.
        synchronous_commit: 'on',
        ...(options.replicaRole ? { session_replication_role: 'replica' } : {}),
      },
    })
    await ensureTargetTables(client)
    await lockWriter(client, `${options.run} ${options.source}`, options.clock)
    const { rows } = await client.query<{ lsn: string }>(
      'SELECT lsn::text AS lsn FROM pgshard.reshard_progress WHERE run = $1 AND source = $2',
      [options.run, options.source],
    )
    const progress = rows[0] ? parseLsn(rows[0].lsn) : LSN_ZERO
    return new TargetWriter(client, options, progress)
  }

  /** Part of a source transaction has been sent and waits for the rest. */
  get isOpen(): boolean {
    return this.#isOpen
  }

  /** The parts of the run's copy that stand here. */
  copied(): Promise<CopiedPart[]> {
    return readCopiedOf(this.#client, this.#options.run)
  }

  /**
   * Sends the batch. With `upTo`, the end of the last whole source transaction, it is committed together with it;
   * without, the transaction stays open. A batch that fails is applied again change by change in the source's order:
   * a value that one row frees and another takes needs that order.
   */
  async flush(upTo: Lsn | undefined): Promise<void> {
    if (this.batch.size === 0 && !(this.#isOpen && upTo !== undefined)) return
    const statements: ApplyStatement[] = []
    for (const [table, ops] of this.batch.net()) {
      statements.push(...applyNet(table, ops, this.#names))
    }
    if (this.#isOpen || upTo === undefined) await this.#continue(statements, upTo)
    else await this.#whole(statements, upTo)
    if (upTo !== undefined) this.progress = upTo
    this.batch.clear()
  }

  /** Runs statements in the transaction of the source's transaction at hand, after what was batched. */
  async execute(texts: readonly string[]): Promise<void> {
    await this.flush(undefined)
    await this.#open()
    for (const text of texts) await this.#client.query(text)
  }

  /** A row as it will stand here with what is batched; undefined when it will not. */
  async fetch(table: MoveTable, key: PlacedTuple): Promise<PlacedTuple | undefined> {
    const pending = this.batch.pending(table, key)
    if (pending?.kind === 'put') return pending.row
    if (pending?.kind === 'delete') return undefined
    const row = await fetchRow(this.#client, table, key, table.targetName)
    return row && pending ? overlay(table, row, pending.row) : row
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

  /** The usual case, in one go: nothing is waited for between BEGIN and COMMIT. */
  async #whole(statements: readonly ApplyStatement[], upTo: Lsn): Promise<void> {
    const answers = [
      this.#client.query('BEGIN'),
      ...statements.map((statement) => this.#run(statement)),
      this.#store(upTo),
      // After an error COMMIT answers ROLLBACK without an error of its own: the first failure counts.
      this.#client.query('COMMIT'),
    ]
    try {
      await allOf(answers)
    } catch (error) {
      if (!isOfServer(error)) throw this.#failure(error, undefined)
      await this.#open()
      await this.#oneByOne()
      await this.#commit(upTo)
    }
  }

  /** Into an open transaction: a failure takes back this batch alone. */
  async #continue(statements: readonly ApplyStatement[], upTo: Lsn | undefined): Promise<void> {
    await this.#open()
    try {
      await allOf([
        this.#client.query('SAVEPOINT batch'),
        ...statements.map((statement) => this.#run(statement)),
        this.#client.query('RELEASE batch'),
      ])
    } catch (error) {
      if (!isOfServer(error)) throw this.#failure(error, undefined)
      await this.#client.query('ROLLBACK TO batch')
      await this.#oneByOne()
    }
    if (upTo !== undefined) await this.#commit(upTo)
  }

  async #oneByOne(): Promise<void> {
    let current: MoveTable | undefined
    try {
      for (const op of this.batch.log) {
        current = op.table
        for (const statement of applyOne(op, this.#names)) await this.#run(statement)
        this.singleRows++
      }
    } catch (error) {
      this.#isOpen = false
      await this.#client.query('ROLLBACK').catch(() => undefined)
      throw this.#failure(error, current)
    }
  }

  async #open(): Promise<void> {
    if (!this.#isOpen) await this.#client.query('BEGIN')
    this.#isOpen = true
  }

  async #commit(upTo: Lsn): Promise<void> {
    try {
      await allOf([this.#store(upTo), this.#client.query('COMMIT')])
    } catch (error) {
      throw this.#failure(error, undefined)
    }
    this.#isOpen = false
  }

  #store(upTo: Lsn): Promise<unknown> {
    const values = [this.#options.run, this.#options.source, printLsn(upTo)]
    return this.#client.query({ name: 'progress', text: progressSql, values })
  }

  #run(statement: ApplyStatement): Promise<unknown> {
    const { name, text, values } = statement
    if (name === '') return this.#client.query(text)
    return this.#client.query({ name, text, values: [...values] })
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

/** An error of the server leaves the connection usable; any other does not. */
const isOfServer = (error: unknown): boolean =>
  (error as { code?: string }).code !== undefined &&
  (error as { severity?: string }).severity !== undefined

/** Waits for all answers; the first failure counts. */
async function allOf(answers: readonly Promise<unknown>[]): Promise<void> {
  for (const answer of await Promise.allSettled(answers)) {
    if (answer.status === 'rejected') throw answer.reason
  }
}
