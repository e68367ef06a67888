/** SHOW TASKS, TABLE_COPIES and REPLICATION_SLOTS: PgDog's columns first, then ours. Data, not logic. */
import type { MovesView, SlotView, TableCopyView, TaskView } from './move-control.js'
import { bool, type Cell, type ColumnOf, count, span, stamp, text } from './show-table.js'

export interface MoveTable {
  readonly columns: readonly ColumnOf<never>[]
  rows(view: MovesView): Cell[][]
}

function moveTable<R>(
  columns: readonly ColumnOf<R>[],
  rowsOf: (view: MovesView) => readonly R[],
): MoveTable {
  return {
    columns,
    rows: (view) => rowsOf(view).map((row) => columns.map((column) => column.value(row))),
  }
}

const units = ['B', 'kB', 'MB', 'GB', 'TB']

function human(value: number): string {
  let [amount, unit] = [value, 0]
  while (amount >= 1000 && unit < units.length - 1) {
    amount /= 1000
    unit++
  }
  return `${unit === 0 ? amount : amount.toFixed(1)} ${units[unit]}`
}

const elapsedMs = (task: TaskView): number => Math.max(0, task.updatedAtMs - task.startedAtMs)

const rate = (copy: TableCopyView): number =>
  copy.elapsedMs > 0 ? (copy.bytes * 1000) / copy.elapsedMs : 0

export const moveTables: Readonly<Record<string, MoveTable>> = {
  tasks: moveTable<TaskView>(
    [
      text('id', (t) => t.id),
      text('scope', () => 'root'),
      text('type', () => 'reshard'),
      text('status', (t) => t.state),
      text('inner_status', (t) => t.step),
      text('started_at', (t) => stamp(t.startedAtMs)),
      text('updated_at', (t) => stamp(t.updatedAtMs)),
      text('elapsed', (t) => span(elapsedMs(t))),
      count('elapsed_ms', elapsedMs),
      text('source', (t) => t.from),
      text('target', (t) => t.to),
      text('error', (t) => t.error),
    ],
    (view) => view.tasks,
  ),
  schema_sync: moveTable<TaskView>(
    [
      text('database', (t) => t.to),
      text('user', () => null),
      text('shard', () => null),
      text('kind', () => 'pre'),
      text('sync_state', (t) => (t.step === 'schema' ? t.state : 'done')),
      text('started_at', (t) => stamp(t.startedAtMs)),
      text('elapsed', (t) => span(elapsedMs(t))),
      count('elapsed_ms', elapsedMs),
      text('table_schema', () => null),
      text('table_name', () => null),
      text('sql', () => null),
      text('task', (t) => t.id),
    ],
    (view) => view.tasks,
  ),
  table_copies: moveTable<TableCopyView>(
    [
      text('schema', (c) => c.schema),
      text('table', (c) => c.table),
      text('status', (c) => c.state),
      count('rows', (c) => c.rows),
      text('rows_human', (c) => c.rows.toLocaleString('en-US')),
      count('bytes', (c) => c.bytes),
      text('bytes_human', (c) => human(c.bytes)),
      count('bytes_per_sec', rate),
      text('bytes_per_sec_human', (c) => `${human(Math.round(rate(c)))}/s`),
      text('elapsed', (c) => span(c.elapsedMs)),
      count('elapsed_ms', (c) => c.elapsedMs),
      text('sql', () => null),
      count('bytes_on_disk', (c) => c.totalBytes),
      text('task', (c) => c.task),
    ],
    (view) => view.copies,
  ),
  replication_slots: moveTable<SlotView>(
    [
      text('host', (s) => s.host),
      count('port', (s) => s.port),
      text('database_name', (s) => s.database),
      text('name', (s) => s.name),
      text('lsn', (s) => s.lsn),
      text('lag', (s) => human(s.lagBytes)),
      count('lag_bytes', (s) => s.lagBytes),
      bool('copy_data', (s) => s.isTemporary),
      text('last_transaction', () => null),
      text('last_transaction_ms', () => null),
      text('task', (s) => s.task),
    ],
    (view) => view.slots,
  ),
}
