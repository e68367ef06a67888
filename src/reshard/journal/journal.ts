/**
 * What a run did and is about to do, in schema pgshard of the target's first shard; progress on every target.
 * Every slot, publication and object is registered before it is made, so that cleanup finds it after any death.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.js'
import { type Deferred, deferred } from '../../base/deferred.js'
import { engineError } from '../../errors/engine-error.js'
import { adminQuery, type TextRow } from '../../pg/admin-query.js'
import { type HostClient, openHostClient } from '../../pg/host-client.js'
import { canonicalSettings, type ReshardSide } from '../side.js'
import { journalTables, targetTables } from './journal-tables.js'
import { lockRun } from './run-lock.js'

export type RunState =
  | 'planned'
  | 'schema'
  | 'copying'
  | 'following'
  | 'verifying'
  | 'ready'
  | 'cutting_over'
  | 'cut_over'
  | 'rolled_back'
  | 'cleaned'
  | 'paused'
  | 'failed'

export type ObjectKind = 'slot' | 'publication' | 'target_schema' | 'incoming' | 'fence' | 'role'

export interface JournalObject {
  readonly kind: ObjectKind
  readonly side: 'source' | 'target'
  readonly shard: number
  readonly name: string
}

export interface JournalTable {
  readonly name: string
  readonly rows: number
  readonly bytes: number
  readonly totalBytes: number
  readonly state: 'waiting' | 'copying' | 'copied' | 'verified' | 'different'
}

/** A key range of a table on a source; the next part's low is its open end. */
export interface JournalPart {
  readonly table: string
  readonly source: number
  readonly part: number
  /** JSON of the texts of the key's columns; null: open below. */
  readonly low: string | null
}

export interface JournalRun {
  readonly run: string
  readonly source: string
  readonly target: string
  readonly state: RunState
  /** The step that is under way or to be done next; null in records of older versions. */
  readonly step: string | null
  readonly error: string | null
  readonly facts: Record<string, unknown>
}

/** Makes the tables that every target has. Idempotent. */
export async function ensureTargetTables(client: HostClient): Promise<void> {
  // Where they stand nothing must be allowed that making them needs.
  const [found] = await adminQuery(
    client,
    `SELECT (to_regclass('pgshard.reshard_progress') IS NOT NULL AND to_regclass('pgshard.reshard_copied') IS NOT NULL
             AND to_regclass('pgshard.reshard_done') IS NOT NULL)::text AS all`,
  )
  if (found?.['all'] === 'true') return
  // Several may do so at once; CREATE … IF NOT EXISTS alone can still collide.
  await adminQuery(
    client,
    `BEGIN; SELECT pg_advisory_xact_lock(7307498301); ${targetTables} COMMIT;`,
  )
}

/** What the lock of a move is named after. */
export const pairName = (source: string, target: string): string => JSON.stringify([source, target])

/** A name for a run: short, and good in the name of a slot. */
export const newRunName = (): string => randomBytes(4).toString('hex')

export class Journal {
  readonly run: string
  readonly #client: HostClient
  readonly #lost: Deferred<never> = deferred()
  #last: Promise<unknown> = Promise.resolve()
  #isClosed = false

  private constructor(client: HostClient, run: string) {
    this.#client = client
    this.run = run
    this.#lost.promise.catch(() => undefined)
    client.on('end', () => {
      if (!this.#isClosed) this.#lost.reject(engineError('RESHARD_JOURNAL_LOST', { run }))
    })
  }

  /** Rejects when the connection, and so the lock of the run, is lost; never resolves. */
  get lost(): Promise<never> {
    return this.#lost.promise
  }

  /** Opens the journal of a new run, locks the pair of databases and records it. @throws RESHARD_BUSY */
  static async begin(source: ReshardSide, target: ReshardSide, clock: Clock): Promise<Journal> {
    const journal = await Journal.#connect(target, newRunName())
    try {
      await lockRun(journal.#client, pairName(source.name, target.name), clock)
      await ensureTargetTables(journal.#client)
      await journal.#ask(journalTables)
      await journal.#ask(
        `INSERT INTO pgshard.reshard_run (run, source, target, state) VALUES ($1, $2, $3, 'planned')`,
        [journal.run, source.name, target.name],
      )
      return journal
    } catch (error) {
      await journal.close()
      throw error
    }
  }

  /** Opens and locks the journal of a run that is recorded. @throws RESHARD_BUSY */
  static async continue(
    record: { readonly run: string; readonly source: string; readonly target: string },
    target: ReshardSide,
    clock: Clock,
  ): Promise<Journal> {
    const journal = await Journal.#connect(target, record.run)
    try {
      await lockRun(journal.#client, pairName(record.source, record.target), clock)
      await ensureTargetTables(journal.#client)
      await journal.#ask(journalTables)
      return journal
    } catch (error) {
      await journal.close()
      throw error
    }
  }

  static async #connect(target: ReshardSide, run: string): Promise<Journal> {
    const first = target.shards[0] as (typeof target.shards)[number]
    const client = await openHostClient(first, {
      applicationName: 'pgshard reshard journal',
      settings: { ...canonicalSettings, synchronous_commit: 'on' },
    })
    return new Journal(client, run)
  }

  /** A step begins: a run that dies from here on goes on with it. */
  async enter(step: string, state: RunState): Promise<void> {
    await this.#ask(
      `UPDATE pgshard.reshard_run SET state = $2, step = $3, error = NULL, changed_at = now()
        WHERE run = $1`,
      [this.run, state, step],
    )
  }

  /** The step at hand has been done; the run goes on with `next`. */
  async advance(next: string): Promise<void> {
    await this.#ask('UPDATE pgshard.reshard_run SET step = $2, changed_at = now() WHERE run = $1', [
      this.run,
      next,
    ])
  }

  /** Keeps a text of the run; one that is kept already stays as it is. */
  async keepText(name: string, content: string): Promise<void> {
    await this.#ask(
      `INSERT INTO pgshard.reshard_text (run, name, content) VALUES ($1, $2, $3)
       ON CONFLICT (run, name) DO NOTHING`,
      [this.run, name, content],
    )
  }

  async text(name: string): Promise<string | undefined> {
    const [row] = await this.#ask(
      'SELECT content FROM pgshard.reshard_text WHERE run = $1 AND name = $2',
      [this.run, name],
    )
    return row?.['content'] ?? undefined
  }

  /** Where the parts of a table of a source begin: `null` for the first, which is open below. Kept once. */
  async keepParts(table: string, source: number, lows: readonly (string | null)[]): Promise<void> {
    await this.#ask(
      `INSERT INTO pgshard.reshard_part (run, "table", source, part, low)
       SELECT $1, $2, $3, part - 1, low
         FROM jsonb_array_elements_text($4::jsonb) WITH ORDINALITY AS t (low, part)
       ON CONFLICT (run, "table", source, part) DO NOTHING`,
      [this.run, table, source, JSON.stringify(lows)],
    )
  }

  async parts(): Promise<readonly JournalPart[]> {
    const rows = await this.#ask(
      // By the numbers: an output column of the same name would be ordered as text.
      `SELECT p."table", p.source::text, p.part::text, p.low FROM pgshard.reshard_part p
        WHERE p.run = $1 ORDER BY p."table", p.source, p.part`,
      [this.run],
    )
    return rows.map((row) => ({
      table: row['table'] as string,
      source: Number(row['source']),
      part: Number(row['part']),
      low: row['low'] ?? null,
    }))
  }

  async setState(state: RunState, error?: string): Promise<void> {
    await this.#ask(
      'UPDATE pgshard.reshard_run SET state = $2, error = $3, changed_at = now() WHERE run = $1',
      [this.run, state, error ?? null],
    )
  }

  /** Adds facts to the run: figures for status. */
  async note(facts: Record<string, unknown>): Promise<void> {
    await this.#ask(
      'UPDATE pgshard.reshard_run SET facts = facts || $2::jsonb, changed_at = now() WHERE run = $1',
      [this.run, JSON.stringify(facts)],
    )
  }

  /** To be called, and awaited, before the object is made. */
  async register(object: JournalObject): Promise<void> {
    await this.#ask(
      `INSERT INTO pgshard.reshard_object (run, kind, side, shard, name) VALUES ($1, $2, $3, $4, $5)
       ON CONFLICT (run, kind, side, shard, name) DO UPDATE SET is_gone = false`,
      [this.run, object.kind, object.side, object.shard, object.name],
    )
  }

  async markGone(object: JournalObject): Promise<void> {
    await this.#ask(
      `UPDATE pgshard.reshard_object SET is_gone = true
        WHERE run = $1 AND kind = $2 AND side = $3 AND shard = $4 AND name = $5`,
      [this.run, object.kind, object.side, object.shard, object.name],
    )
  }

  /** What became of a table that is recorded already. */
  async setTableState(name: string, state: JournalTable['state']): Promise<void> {
    await this.#ask('UPDATE pgshard.reshard_table SET state = $3 WHERE run = $1 AND name = $2', [
      this.run,
      name,
      state,
    ])
  }

  async setTable(table: JournalTable): Promise<void> {
    await this.#ask(
      `INSERT INTO pgshard.reshard_table (run, name, rows, bytes, total_bytes, state)
       VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (run, name) DO UPDATE
       SET rows = excluded.rows, bytes = excluded.bytes, total_bytes = excluded.total_bytes,
           state = excluded.state`,
      [this.run, table.name, table.rows, table.bytes, table.totalBytes, table.state],
    )
  }

  /** One statement after the other, whoever asks. */
  #ask(sql: string, values: readonly (string | number | null)[] = []): Promise<TextRow[]> {
    const answer = this.#last.then(() => adminQuery(this.#client, sql, values))
    this.#last = answer.catch(() => undefined)
    return answer
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#last
    await this.#client.end().catch(() => undefined)
  }
}
