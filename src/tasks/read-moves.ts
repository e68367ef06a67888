/** The runs that the journals of a configuration's databases know of: states, tables, slots. Reads only. */
import type { MovesView, SlotView, TableCopyView, TaskView } from '../admin/move-control.js'
import { adminQuery, type TextRow } from '../pg/admin-query.js'
import type { HostClient } from '../pg/host-client.js'
import { type MoveConfig, sideOf } from '../reshard/configured-side.js'
import { pairName } from '../reshard/journal/journal.js'
import { isRunLocked } from '../reshard/journal/run-lock.js'
import { type ReshardSide, withShard } from '../reshard/side.js'

/** A task, and what only its control needs to know. */
export interface KnownTask extends TaskView {
  /** The database of the configuration whose first shard has the journal. */
  readonly home: string
  /** No process works on it. */
  readonly isResting: boolean
}

export interface KnownMoves extends MovesView {
  readonly tasks: readonly KnownTask[]
}

/** Runs of a journal that are shown at most, newest first. */
const SHOWN = 20

const taskQuery = `
SELECT run, source, target, state, coalesce(to_jsonb(r)->>'step', '') AS step, error,
       (extract(epoch FROM started_at) * 1000)::text AS started, (extract(epoch FROM changed_at) * 1000)::text AS changed,
       facts->>'copy_started_ms' AS copy_started, facts->>'copy_seen_ms' AS copy_seen
  FROM pgshard.reshard_run r ORDER BY started_at DESC LIMIT ${SHOWN}`

export async function readMoves(config: MoveConfig): Promise<KnownMoves> {
  const sides = config.databases.flatMap(({ name }): ReshardSide[] => {
    try {
      return [sideOf(config, name)]
    } catch {
      return [] // nobody may log in there: no run has either
    }
  })
  const found = await Promise.allSettled(sides.map((side) => readJournalOf(side)))
  const known = found.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
  const tasks = known.flatMap((one) => one.tasks).sort((a, b) => b.startedAtMs - a.startedAtMs)
  const copies = known.flatMap((one) => one.copies)
  const runs = tasks.map((task) => task.id)
  const slots = await Promise.allSettled(
    sides.flatMap((side) => side.shards.map((target) => readSlots(target, runs))),
  )
  return {
    tasks,
    copies,
    slots: slots.flatMap((end) => (end.status === 'fulfilled' ? end.value : [])),
  }
}

async function readJournalOf(
  side: ReshardSide,
): Promise<{ tasks: KnownTask[]; copies: TableCopyView[] }> {
  return withShard(side.shards[0] as ReshardSide['shards'][number], async (client) => {
    const [journal] = await adminQuery(
      client,
      `SELECT (to_regclass('pgshard.reshard_run') IS NOT NULL)::text AS found`,
    )
    if (journal?.['found'] !== 'true') return { tasks: [], copies: [] }
    const rows = await adminQuery(client, taskQuery)
    const tasks: KnownTask[] = []
    const copies: TableCopyView[] = []
    for (const row of rows) {
      const pair = pairName(row['source'] ?? '', row['target'] ?? '')
      // The lock is of the pair, and only its latest run can be at work.
      const isLatest = !tasks.some(({ from, to }) => pairName(from, to) === pair)
      const isBusy = isLatest && (await isRunLocked(client, pair))
      tasks.push(taskOf(row, side.name, !isBusy))
      copies.push(...(await readCopies(client, row)))
    }
    return { tasks, copies }
  })
}

const taskOf = (row: TextRow, home: string, isResting: boolean): KnownTask => ({
  id: row['run'] ?? '',
  from: row['source'] ?? '',
  to: row['target'] ?? '',
  state: row['state'] ?? '',
  step: row['step'] ?? '',
  startedAtMs: Number(row['started']),
  updatedAtMs: Number(row['changed']),
  error: row['error'] ?? null,
  home,
  isResting,
})

async function readCopies(client: HostClient, run: TextRow): Promise<TableCopyView[]> {
  const rows = await adminQuery(
    client,
    `SELECT name, rows::text, bytes::text, total_bytes::text AS total, state FROM pgshard.reshard_table WHERE run = $1 ORDER BY name`,
    [run['run'] ?? ''],
  )
  const started = Number(run['copy_started'] ?? 0)
  const seen = Number(run['copy_seen'] ?? started)
  return rows.map((row) => {
    const label = row['name'] ?? ''
    const dot = label.indexOf('.')
    return {
      task: run['run'] ?? '',
      schema: label.slice(0, dot),
      table: label.slice(dot + 1),
      state: row['state'] ?? '',
      rows: Number(row['rows']),
      bytes: Number(row['bytes']),
      totalBytes: Number(row['total']),
      elapsedMs: Math.max(0, seen - started),
    }
  })
}

async function readSlots(
  target: ReshardSide['shards'][number],
  runs: readonly string[],
): Promise<SlotView[]> {
  if (runs.length === 0) return []
  return withShard(target, async (client) => {
    const rows = await adminQuery(
      client,
      `SELECT slot_name::text AS name, temporary::text AS temporary, confirmed_flush_lsn::text AS lsn,
              coalesce(pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn), 0)::text AS lag
         FROM pg_replication_slots WHERE database = current_database() AND starts_with(slot_name::text, 'pgshard_') ORDER BY 1`,
    )
    return rows.flatMap((row) => {
      const name = row['name'] ?? ''
      const task = runs.find((run) => name.startsWith(`pgshard_${run}`))
      if (task === undefined) return []
      const { host, port, database } = target
      const lagBytes = Number(row['lag'])
      const isTemporary = row['temporary'] === 'true'
      return [{ task, host, port, database, name, lsn: row['lsn'] ?? '', lagBytes, isTemporary }]
    })
  })
}
