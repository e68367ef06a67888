/**
 * What a run did and is about to do, in schema pgshard of the target's first shard; progress on every target.
 * Every slot, publication and object is registered before it is made, so that cleanup finds it after any death.
 */
import { randomBytes } from 'node:crypto'
import { adminQuery } from '../../pg/admin-query.js'
import { type HostClient, openHostClient } from '../../pg/host-client.js'
import { type ReshardSide, withShard } from '../side.js'

export type RunState =
  | 'planned'
  | 'schema'
  | 'copying'
  | 'following'
  | 'verifying'
  | 'ready'
  | 'cutting_over'
  | 'cut_over'
  | 'cleaned'
  | 'failed'

export type ObjectKind = 'slot' | 'publication' | 'target_schema' | 'fence'

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

export interface JournalRun {
  readonly run: string
  readonly source: string
  readonly target: string
  readonly state: RunState
  readonly error: string | null
  readonly facts: Record<string, unknown>
}

const progressTable = `
CREATE SCHEMA IF NOT EXISTS pgshard;
CREATE TABLE IF NOT EXISTS pgshard.reshard_progress (
  run text, source int, lsn pg_lsn NOT NULL, PRIMARY KEY (run, source));`

const journalTables = `${progressTable}
CREATE TABLE IF NOT EXISTS pgshard.reshard_run (
  run text PRIMARY KEY, source text NOT NULL, target text NOT NULL, state text NOT NULL, error text,
  facts jsonb NOT NULL DEFAULT '{}', started_at timestamptz NOT NULL DEFAULT now(),
  changed_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE IF NOT EXISTS pgshard.reshard_object (
  run text, kind text, side text, shard int, name text, is_gone boolean NOT NULL DEFAULT false,
  registered_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (run, kind, side, shard, name));
CREATE TABLE IF NOT EXISTS pgshard.reshard_table (
  run text, name text, rows bigint NOT NULL, bytes bigint NOT NULL, total_bytes bigint NOT NULL,
  state text NOT NULL, PRIMARY KEY (run, name));`

/** Makes the table of progress on a target. Idempotent. */
export async function ensureProgressTable(client: HostClient): Promise<void> {
  // Two sources may do so at once; CREATE … IF NOT EXISTS alone can still collide.
  await adminQuery(
    client,
    `BEGIN; SELECT pg_advisory_xact_lock(7307498301); ${progressTable} COMMIT;`,
  )
}

/** A name for a run: short, and good in the name of a slot. */
export const newRunName = (): string => randomBytes(4).toString('hex')

export class Journal {
  readonly run: string
  readonly #client: HostClient
  #last: Promise<unknown> = Promise.resolve()

  private constructor(client: HostClient, run: string) {
    this.#client = client
    this.run = run
  }

  /** Opens the journal of a new run and records it. */
  static async begin(source: ReshardSide, target: ReshardSide): Promise<Journal> {
    const journal = await Journal.#connect(target, newRunName())
    await journal.#ask(journalTables)
    await journal.#ask(
      `INSERT INTO pgshard.reshard_run (run, source, target, state) VALUES ($1, $2, $3, 'planned')`,
      [journal.run, source.name, target.name],
    )
    return journal
  }

  /** Opens the journal of a run that is recorded. */
  static continue(target: ReshardSide, run: string): Promise<Journal> {
    return Journal.#connect(target, run)
  }

  static async #connect(target: ReshardSide, run: string): Promise<Journal> {
    const first = target.shards[0] as (typeof target.shards)[number]
    const client = await openHostClient(first, { applicationName: 'pgshard reshard journal' })
    return new Journal(client, run)
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
  #ask(sql: string, values: readonly (string | number | null)[] = []): Promise<unknown> {
    const answer = this.#last.then(() => adminQuery(this.#client, sql, values))
    this.#last = answer.catch(() => undefined)
    return answer
  }

  async close(): Promise<void> {
    await this.#last
    await this.#client.end().catch(() => undefined)
  }
}

export interface JournalRecord extends JournalRun {
  readonly objects: readonly JournalObject[]
  readonly tables: readonly JournalTable[]
}

const hasJournal = async (client: HostClient): Promise<boolean> => {
  const [row] = await adminQuery(
    client,
    `SELECT to_regclass('pgshard.reshard_run') IS NOT NULL AS found`,
  )
  return row?.['found'] === 't'
}

/** The latest run between two databases, with what it still owns; undefined when none is recorded. */
export async function readJournal(
  source: string,
  target: ReshardSide,
): Promise<JournalRecord | undefined> {
  const first = target.shards[0] as (typeof target.shards)[number]
  return withShard(first, async (client) => {
    if (!(await hasJournal(client))) return undefined
    const [run] = await adminQuery(
      client,
      `SELECT run, source, target, state, error, facts::text AS facts FROM pgshard.reshard_run
        WHERE source = $1 AND target = $2 ORDER BY started_at DESC LIMIT 1`,
      [source, target.name],
    )
    if (!run) return undefined
    const name = run['run'] as string
    const objects = await adminQuery(
      client,
      `SELECT kind, side, shard::text AS shard, name FROM pgshard.reshard_object
        WHERE run = $1 AND NOT is_gone ORDER BY registered_at DESC`,
      [name],
    )
    const tables = await adminQuery(
      client,
      `SELECT name, rows::text, bytes::text, total_bytes::text AS total, state
         FROM pgshard.reshard_table WHERE run = $1 ORDER BY name`,
      [name],
    )
    return {
      run: name,
      source,
      target: target.name,
      state: run['state'] as RunState,
      error: run['error'] ?? null,
      facts: JSON.parse(run['facts'] as string) as Record<string, unknown>,
      objects: objects.map((row) => ({
        kind: row['kind'] as ObjectKind,
        side: row['side'] as 'source' | 'target',
        shard: Number(row['shard']),
        name: row['name'] as string,
      })),
      tables: tables.map((row) => ({
        name: row['name'] as string,
        rows: Number(row['rows']),
        bytes: Number(row['bytes']),
        totalBytes: Number(row['total']),
        state: row['state'] as JournalTable['state'],
      })),
    }
  })
}
