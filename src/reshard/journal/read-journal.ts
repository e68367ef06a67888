/** The journal read: by status, resume and cleanup, from any machine. */
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { type ReshardSide, withShard } from '../side.js'
import type { JournalObject, JournalRun, JournalTable, ObjectKind, RunState } from './journal.js'

export interface JournalRecord extends JournalRun {
  /** By the clock of its server, as ISO text. */
  readonly startedAt: string
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
      `SELECT run, state, to_jsonb(r)->>'step' AS step, error, facts::text AS facts,
              to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US') AS started_at FROM pgshard.reshard_run r
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
      step: run['step'] ?? null,
      error: run['error'] ?? null,
      startedAt: run['started_at'] ?? '',
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
