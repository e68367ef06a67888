/** Carries a console command out: rows and a command tag. What a command returns is known before it runs. */
import { engineError } from '../errors/engine-error.js'
import type { AdminCommand, SelectValue } from './admin-command.js'
import type { ConsoleControl } from './move-control.js'
import { pgbouncerTables } from './pgbouncer/pgbouncer-tables.js'
import type { ProxyView } from './proxy-view.js'
import { insideTables, peerTable } from './show-inside.js'
import { moveTables } from './show-moves.js'
import { statsTables } from './show-stats.js'
import type { Cell, ColumnType, ShowTable } from './show-table.js'
import { plainTables } from './show-tables.js'

export type AnswerShape = readonly { readonly name: string; readonly type: ColumnType }[]

export interface Answer {
  readonly columns: AnswerShape
  /** The session takes from the front. */
  readonly rows: Cell[][]
  /** Empty for an empty statement. */
  readonly tag: string
}

export interface AnswerContext {
  /** Looked at anew for each command that shows something. */
  readonly view: () => ProxyView | Promise<ProxyView>
  readonly control: ConsoleControl
  readonly identity: { readonly user: string; readonly database: string }
  /** What the client has SET for itself. */
  readonly settings: ReadonlyMap<string, string>
}

const tables: Readonly<Record<string, ShowTable>> = {
  ...plainTables,
  ...statsTables,
  ...insideTables,
}

/** The table that is made of the view; on the database `pgbouncer` in PgBouncer's form. */
const viewTable = (what: string, database: string): ShowTable | undefined =>
  (database === 'pgbouncer' ? pgbouncerTables[what] : undefined) ?? tables[what]

function tableOf(what: string, database: string): Pick<ShowTable, 'columns'> {
  const known = viewTable(what, database) ?? (what === 'peers' ? peerTable : moveTables[what])
  if (!known) throw engineError('ADMIN_SYNTAX', { reason: `unknown table "${what}"` })
  return known
}

/** Positions of the columns that SHOW CLIENTS a, b … keeps: those that say who it is, and those named. */
function keptColumns(table: Pick<ShowTable, 'columns'>, wanted: readonly string[]): number[] {
  const all = table.columns.map((_, i) => i)
  if (wanted.length === 0) return all
  const names = table.columns.map((column) => column.name)
  for (const name of wanted) {
    if (!names.includes(name))
      throw engineError('ADMIN_NO_SUCH', { kind: 'column', name, where: 'SHOW without columns' })
  }
  const always = ['user', 'database', 'addr', 'port']
  return all.filter((i) => [...always, ...wanted].includes(names[i] as string))
}

/** The columns of the answer on this database of the console; undefined when it has no rows. */
export function shapeOf(command: AdminCommand, database: string): AnswerShape | undefined {
  switch (command.kind) {
    case 'show': {
      const table = tableOf(command.what, database)
      return keptColumns(table, command.columns).map((i) => table.columns[i] as AnswerShape[number])
    }
    case 'parameter':
      return [{ name: command.name, type: 'text' }]
    case 'select':
      return [{ name: command.column, type: command.value === 'one' ? 'int4' : 'text' }]
    case 'reshard':
    case 'copy_data':
    case 'replicate':
    case 'schema_sync':
      return [{ name: 'task_id', type: 'text' }]
    case 'cutover':
    case 'stop_task':
      return [{ name: command.kind, type: 'text' }]
    case 'probe':
      return [{ name: 'latency', type: 'int8' }]
    case 'array_types':
      return [
        { name: 'oid', type: 'int4' },
        { name: 'typarray', type: 'int4' },
      ]
    default:
      return undefined
  }
}

/** @throws ADMIN_NO_SUCH, ADMIN_UNKNOWN_SETTING, ADMIN_RELOAD_FAILED */
export async function answerCommand(
  command: AdminCommand,
  context: AnswerContext,
): Promise<Answer> {
  const columns = shapeOf(command, context.identity.database) ?? []
  const rows = columns.length > 0 ? await rowsOf(command, context) : []
  if (columns.length === 0) await act(command, context)
  return { columns, rows, tag: tagOf(command, rows.length) }
}

function tagOf(command: AdminCommand, rowCount: number): string {
  switch (command.kind) {
    case 'empty':
      return ''
    case 'session':
      return command.tag
    case 'show':
    case 'parameter':
      return 'SHOW'
    case 'select':
    case 'array_types':
      return `SELECT ${rowCount}`
    case 'restart_workers':
      return 'RESTART WORKERS'
    case 'set_move':
    case 'set_config':
      return 'SET'
    default:
      return command.kind.toUpperCase()
  }
}

async function rowsOf(command: AdminCommand, context: AnswerContext): Promise<Cell[][]> {
  if (command.kind === 'show') {
    const kept = keptColumns(tableOf(command.what, context.identity.database), command.columns)
    const { filter } = command
    const all = await shownRows(command.what, context)
    const rows = filter === undefined ? all : all.filter(([text]) => has(text, filter))
    return rows.map((row) => kept.map((i) => row[i] ?? null))
  }
  if (command.kind === 'parameter') return [[await parameterValue(command.name, context)]]
  if (command.kind === 'select') return [[await selectValue(command.value, context)]]
  if (command.kind === 'probe') return [[Math.round(await context.control.probe(command.url))]]
  return moveRows(command, context)
}

const has = (text: Cell | undefined, part: string): boolean =>
  String(text).toLowerCase().includes(part.toLowerCase())

async function shownRows(
  what: string,
  { view, control, identity }: AnswerContext,
): Promise<Cell[][]> {
  const ofMoves = moveTables[what]
  if (ofMoves) return ofMoves.rows(await control.moves.look())
  const table = viewTable(what, identity.database)
  return table ? table.rows(await view()) : peerTable.rows(await control.peers())
}

/** Commands about moves answer with the task. */
async function moveRows(command: AdminCommand, { control }: AnswerContext): Promise<Cell[][]> {
  const { moves } = control
  switch (command.kind) {
    case 'reshard':
    case 'copy_data':
    case 'replicate':
    case 'schema_sync':
      return [[await moves.begin(command.kind, command.from, command.to)]]
    case 'cutover':
      return [[await moves.cutover(command.task)]]
    case 'stop_task':
      await moves.stop(command.task)
      return [[command.task]]
    default:
      return []
  }
}

const selectValue = async (
  value: SelectValue,
  { view, identity }: AnswerContext,
): Promise<Cell> => {
  switch (value) {
    case 'one':
      return 1
    case 'version':
      return `pgshard ${(await view()).version} admin console`
    case 'user':
      return identity.user
    case 'database':
      return identity.database
  }
}

/** Run-time parameters that drivers, psql and pgcli ask for; `server_version` names a PostgreSQL so that they parse it. */
export const CONSOLE_PARAMETERS: Readonly<Record<string, string>> = {
  server_version: '18.0 (pgshard)',
  server_version_num: '180000',
  server_encoding: 'UTF8',
  client_encoding: 'UTF8',
  datestyle: 'ISO, MDY',
  intervalstyle: 'postgres',
  timezone: 'UTC',
  integer_datetimes: 'on',
  standard_conforming_strings: 'on',
  is_superuser: 'off',
  in_hot_standby: 'off',
  default_transaction_read_only: 'off',
  transaction_read_only: 'off',
  transaction_isolation: 'read committed',
  default_transaction_isolation: 'read committed',
  application_name: '',
  search_path: '"$user", public',
  extra_float_digits: '1',
  max_identifier_length: '63',
  bytea_output: 'hex',
  statement_timeout: '0',
  lock_timeout: '0',
  client_min_messages: 'notice',
}

async function parameterValue(
  name: string,
  { settings, identity, view }: AnswerContext,
): Promise<string> {
  if (name === 'session_authorization') return identity.user
  const value = settings.get(name) ?? CONSOLE_PARAMETERS[name]
  if (value !== undefined) return value
  const configured = (await view()).config().find((one) => one.name === name)
  if (configured) return configured.value
  throw engineError('ADMIN_UNKNOWN_SETTING', { name })
}

async function act(command: AdminCommand, { control }: AnswerContext): Promise<void> {
  switch (command.kind) {
    case 'pause':
      return control.pause(command.pools)
    case 'resume':
      return control.resume(command.pools)
    case 'reconnect':
      return control.reconnect(command.pools)
    case 'reload':
      return control.reload()
    case 'shutdown':
      return control.shutdown()
    case 'restart_workers':
      return control.restartWorkers()
    case 'kill':
      return control.kill(command.database)
    case 'force_reload':
      return control.forceReload()
    case 'set_config':
      return control.set(command.name, command.value)
    case 'suspend':
      return control.suspend()
    case 'maintenance':
      return control.maintenance(command.isOn, command.database)
    case 'wait_close':
      return control.waitClose(command.database)
    case 'disable':
      return control.disable(command.database)
    case 'enable':
      return control.enable(command.database)
    case 'healthcheck':
      return control.healthcheck(command.poolId)
    case 'reset':
      return control.reset(command.what)
    case 'kill_client':
      return control.killClient(command.id)
    case 'ban':
      return control.ban(command.poolId)
    case 'unban':
      return control.unban(command.poolId)
    case 'set_move':
      return control.moves.set(command.name, command.value)
    default:
  }
}
