/**
 * Reads one statement of the admin database: console commands, and the few words that drivers and psql send by themselves.
 * Pure. Identifiers fold to lower case as in SQL; quoted ones keep their case.
 */
import { engineError } from '../errors/engine-error.js'
import { type ControlCommand, controlParsers, parseProbe, poolIdOf } from './parse-control.js'
import { type MoveCommand, moveParsers, type Word } from './parse-move.js'

/** Which pools a command means; neither: all. */
export interface PoolSelector {
  readonly user?: string
  readonly database?: string
}

export type AdminCommand =
  | { readonly kind: 'empty' }
  | {
      readonly kind: 'show'
      readonly what: string
      readonly columns: readonly string[]
      readonly filter?: string
    }
  /** A run-time parameter, as `SHOW server_version`. */
  | { readonly kind: 'parameter'; readonly name: string }
  | { readonly kind: 'pause' | 'resume' | 'reconnect'; readonly pools: PoolSelector }
  | { readonly kind: 'reload' | 'shutdown' | 'restart_workers' }
  | { readonly kind: 'kill_client'; readonly id: number }
  | { readonly kind: 'ban' | 'unban'; readonly poolId: number | undefined }
  /** Said by drivers; has no effect. */
  | {
      readonly kind: 'session'
      readonly tag: string
      readonly transaction?: 'begin' | 'end'
      readonly set?: { readonly name: string; readonly value: string }
    }
  | { readonly kind: 'select'; readonly column: string; readonly value: SelectValue }
  | MoveCommand
  | ControlCommand
  /** porsager/postgres asks for array types when it connects. */
  | { readonly kind: 'array_types' }

export type SelectValue = 'one' | 'version' | 'user' | 'database'

const TOKEN =
  /\s+|--[^\n]*|\/\*[\s\S]*?\*\/|"((?:[^"]|"")*)"|'((?:[^']|'')*)'|([A-Za-z_\u0080-\uffff][\w$.\u0080-\uffff]*|-?\d[\w.]*)|(.)/gy

/** @throws ADMIN_SYNTAX */
function wordsOf(sql: string): Word[] {
  const words: Word[] = []
  TOKEN.lastIndex = 0
  for (let match = TOKEN.exec(sql); match; match = TOKEN.exec(sql)) {
    const [, quoted, literal, plain, other] = match
    if (quoted !== undefined)
      words.push({ text: quoted.replaceAll('""', '"'), isName: true, isQuoted: true })
    else if (literal !== undefined)
      words.push({ text: literal.replaceAll("''", "'"), isName: true, isQuoted: true })
    else if (plain !== undefined)
      words.push({ text: plain.toLowerCase(), isName: true, isQuoted: false })
    else if (other === '"' || other === "'")
      throw engineError('ADMIN_SYNTAX', { reason: 'a quote is not closed' })
    else if (other !== undefined) words.push({ text: other, isName: false, isQuoted: false })
  }
  return words
}

/** The statements of a query string, each without its semicolon. @throws ADMIN_SYNTAX */
export function splitStatements(sql: string): string[] {
  const parts: string[] = []
  let from = 0
  TOKEN.lastIndex = 0
  for (let match = TOKEN.exec(sql); match; match = TOKEN.exec(sql)) {
    if (match[4] !== ';') continue
    parts.push(sql.slice(from, match.index))
    from = TOKEN.lastIndex
  }
  parts.push(sql.slice(from))
  const full = parts.filter((part) => wordsOf(part).length > 0)
  return full.length > 0 ? full : ['']
}

/** SHOW words that name a table of the console. */
export const SHOW_TABLES = new Set([
  'active_sockets',
  'bans',
  'client_memory',
  'clients',
  'config',
  'databases',
  'dns_hosts',
  'dns_zones',
  'help',
  'instance_id',
  'listeners',
  'lists',
  'mem',
  'mirrors',
  'peer_pools',
  'peers',
  'pools',
  'prepared',
  'query_cache',
  'replication',
  'replication_slots',
  'schema_sync',
  'server_memory',
  'servers',
  'sockets',
  'state',
  'stats',
  'stats_averages',
  'stats_totals',
  'table_copies',
  'tasks',
  'topology',
  'totals',
  'transactions',
  'users',
  'version',
  'workers',
])

/** Commands of PgDog and PgBouncer that mean nothing here, and what does. */
const ELSEWHERE: Readonly<Record<string, string>> = {
  'show fds':
    'connections are not handed to another process; RESTART WORKERS replaces processes one by one',
  setup: 'run pgshard setup, which says what it changes first',
}

/** Parameters that drivers set at their start; anything else is not a setting of a session. */
const SESSION_SETTINGS = new Set(
  `application_name bytea_output client_encoding client_min_messages datestyle default_transaction_isolation
   default_transaction_read_only extra_float_digits idle_in_transaction_session_timeout intervalstyle lock_timeout
   names search_path session standard_conforming_strings statement_timeout time timezone transaction`.split(
    /\s+/,
  ),
)

/** @throws ADMIN_SYNTAX, ADMIN_UNSUPPORTED */
export function parseCommand(sql: string): AdminCommand {
  const probe = parseProbe(sql)
  if (probe) return probe
  const words = wordsOf(sql)
  while (words.at(-1)?.text === ';' && !words.at(-1)?.isQuoted) words.pop()
  const [verb, ...rest] = words
  if (!verb) return { kind: 'empty' }
  const parse = verb.isQuoted ? undefined : parsers[verb.text]
  if (parse) return parse(rest)
  if (ELSEWHERE[verb.text] && !verb.isQuoted) throw elsewhere(verb.text)
  if (
    /^(with|insert|update|delete|create|drop|alter|copy|explain|table|values|call|do)$/.test(
      verb.text,
    )
  )
    throw noTables(verb.text.toUpperCase())
  throw engineError('ADMIN_SYNTAX', { reason: `unknown command "${verb.text}"` })
}

const elsewhere = (command: string) =>
  engineError('ADMIN_UNSUPPORTED', {
    command: command.toUpperCase(),
    instead: ELSEWHERE[command] ?? '',
  })

const noTables = (command: string) =>
  engineError('ADMIN_UNSUPPORTED', {
    command,
    instead: 'the admin database has no tables; SHOW HELP lists its commands',
  })

const parsers: Readonly<Record<string, (rest: Word[]) => AdminCommand>> = {
  ...moveParsers,
  ...controlParsers,
  show: parseShow,
  pause: (rest) => ({ kind: 'pause', pools: selector(rest) }),
  resume: (rest) => ({ kind: 'resume', pools: selector(rest) }),
  reconnect: (rest) => ({ kind: 'reconnect', pools: selector(rest) }),
  reload: (rest) => alone(rest, { kind: 'reload' }),
  shutdown: (rest) => {
    const [how] = rest
    if (how && /^wait_for_(clients|servers)$/.test(how.text)) rest.shift()
    return alone(rest, { kind: 'shutdown' })
  },
  restart: (rest) => {
    if (rest.shift()?.text !== 'workers')
      throw engineError('ADMIN_SYNTAX', { reason: 'expected RESTART WORKERS' })
    return alone(rest, { kind: 'restart_workers' })
  },
  kill_client: (rest) => {
    const id = numberOf(rest.shift())
    if (id === undefined)
      throw engineError('ADMIN_SYNTAX', { reason: 'KILL_CLIENT needs an id of SHOW CLIENTS' })
    return alone(rest, { kind: 'kill_client', id })
  },
  ban: (rest) => ({ kind: 'ban', poolId: poolIdOf('BAN', rest) }),
  unban: (rest) => ({ kind: 'unban', poolId: poolIdOf('UNBAN', rest) }),
  set: parseSet,
  reset: (rest) => {
    const [name] = rest
    if (name?.text === 'prepared' || name?.text === 'query_cache')
      return { kind: 'reset', what: name.text }
    return { kind: 'session', tag: 'RESET' }
  },
  begin: () => ({ kind: 'session', tag: 'BEGIN', transaction: 'begin' }),
  start: () => ({ kind: 'session', tag: 'START TRANSACTION', transaction: 'begin' }),
  commit: () => ({ kind: 'session', tag: 'COMMIT', transaction: 'end' }),
  end: () => ({ kind: 'session', tag: 'COMMIT', transaction: 'end' }),
  rollback: () => ({ kind: 'session', tag: 'ROLLBACK', transaction: 'end' }),
  abort: () => ({ kind: 'session', tag: 'ROLLBACK', transaction: 'end' }),
  deallocate: () => ({ kind: 'session', tag: 'DEALLOCATE' }),
  discard: () => ({ kind: 'session', tag: 'DISCARD ALL' }),
  select: parseSelect,
}

function alone(rest: readonly Word[], command: AdminCommand): AdminCommand {
  if (rest.length === 0) return command
  throw engineError('ADMIN_SYNTAX', { reason: `unexpected "${rest[0]?.text}"` })
}

/** [db] or [user db], with a comma or a dot between them allowed. */
function selector(rest: readonly Word[]): PoolSelector {
  const names = rest.filter((word) => word.isName)
  if (names.length < rest.length - 1 || names.length > 2)
    throw engineError('ADMIN_SYNTAX', { reason: 'expected [database] or [user database]' })
  const [first, second] = names
  if (!first) return {}
  return second ? { user: first.text, database: second.text } : { database: first.text }
}

function numberOf(word: Word | undefined): number | undefined {
  return word && /^\d{1,15}$/.test(word.text) ? Number(word.text) : undefined
}

function parseShow(rest: Word[]): AdminCommand {
  const [first, ...more] = rest
  if (!first) return { kind: 'show', what: 'help', columns: [] }
  const names = more.filter((word) => word.isName).map((word) => word.text)
  if (first.text === 'query_cache' && names.length > 0)
    return { kind: 'show', what: first.text, columns: [], filter: names.join(' ') }
  if (SHOW_TABLES.has(first.text)) return { kind: 'show', what: first.text, columns: names }
  if (more[0]?.text === 'memory' && SHOW_TABLES.has(`${first.text}_memory`))
    return { kind: 'show', what: `${first.text}_memory`, columns: [] }
  const gone = ELSEWHERE[`show ${first.text}`]
  if (gone !== undefined) throw elsewhere(`show ${first.text}`)
  const name = [first.text, ...names].join(' ')
  return { kind: 'parameter', name: parameterAliases[name] ?? name }
}

const parameterAliases: Readonly<Record<string, string>> = {
  'transaction isolation level': 'transaction_isolation',
  'time zone': 'timezone',
}

function parseSet(rest: Word[]): AdminCommand {
  if (
    rest[0]?.text === 'local' ||
    (rest[0]?.text === 'session' && rest[1]?.text !== 'characteristics')
  )
    rest.shift()
  const [name, ...more] = rest
  if (!name?.isName) throw engineError('ADMIN_SYNTAX', { reason: 'SET needs a name' })
  const value = more
    .filter((word) => word.text !== '=' && (word.text !== 'to' || word.isQuoted))
    .map((word) => word.text)
    .join(' ')
  const [space, limit] = name.text.split('.')
  if (space === 'reshard' && limit) return { kind: 'set_move', name: limit, value }
  if (!SESSION_SETTINGS.has(name.text)) return { kind: 'set_config', name: name.text, value }
  return { kind: 'session', tag: 'SET', set: { name: name.text, value } }
}

/** The probes of drivers and health checks. */
function parseSelect(rest: Word[]): AdminCommand {
  const text = rest.map((word) => word.text).join(' ')
  const one = /^1(?: as (\S+))?$/.exec(text)
  if (one) return { kind: 'select', column: one[1] ?? '?column?', value: 'one' }
  const known = selects[text.replace(/^pg_catalog\./, '')]
  if (known) return { kind: 'select', ...known }
  if (/\btypcategory = A\b/.test(text) && text.includes('typarray')) return { kind: 'array_types' }
  throw noTables('SELECT')
}

const selects: Readonly<Record<string, { column: string; value: SelectValue }>> = {
  'version ( )': { column: 'version', value: 'version' },
  'current_database ( )': { column: 'current_database', value: 'database' },
  current_user: { column: 'current_user', value: 'user' },
  session_user: { column: 'session_user', value: 'user' },
}
