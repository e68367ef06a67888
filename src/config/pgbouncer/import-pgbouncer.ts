/** `config import pgbouncer.ini`: the same pooler as pgdog.toml and users.toml, and a reason for every setting that has no equal. */
import { resolve } from 'node:path'
import { type IniEntry, type ListedUser, readIni, readPairs, readUserList } from './read-ini.js'
import { defaults, number, settingMap, type TomlValue, userSettings } from './setting-map.js'

export interface ImportNote {
  /** Where the setting stands. */
  readonly place: string
  readonly setting: string
  readonly reason: string
}

export interface ImportedConfig {
  readonly pgdogToml: string
  readonly usersToml: string
  readonly databases: number
  readonly users: number
  readonly notes: readonly ImportNote[]
}

type Table = Record<string, TomlValue>

interface Importing {
  readonly base: string
  readonly settings: ReadonlyMap<string, IniEntry>
  readonly databases: readonly IniEntry[]
  readonly users: readonly IniEntry[]
  readonly notes: ImportNote[]
}

const note = (to: Importing, place: string, setting: string, reason: string): void => {
  to.notes.push({ place, setting, reason })
}

/** The last of equal keys wins. */
const byKey = (entries: readonly IniEntry[]): Map<string, IniEntry> =>
  new Map(entries.map((entry) => [entry.key, entry]))

function generalTable(from: Importing): Table {
  const table: Table = {}
  const written = [...from.settings.values()]
  const missing = Object.entries(defaults).flatMap(([key, value]): IniEntry[] =>
    from.settings.has(key) ? [] : [{ section: 'pgbouncer', key, value, place: 'default' }],
  )
  for (const { key, value, place } of [...written, ...missing]) {
    if (userSettings.has(key)) continue
    const map = settingMap[key]
    if (!map) note(from, place, key, 'is not a setting that PgBouncer documents')
    else take(from, table, { key, place, mapped: mapSafely(() => map(value)) })
  }
  return table
}

interface Taken {
  readonly key: string
  readonly place: string
  readonly mapped: { keys?: Readonly<Record<string, TomlValue>>; note?: string }
}

/** Paths start at another directory here. */
const isPath = (key: string): boolean => /^(?:tls_\w*(?:certificate|key)|hba_file)$/.test(key)

function take(from: Importing, table: Table, { key, place, mapped }: Taken): void {
  for (const [name, value] of Object.entries(mapped.keys ?? {})) {
    table[name] = isPath(name) ? resolve(from.base, String(value)) : value
  }
  if (mapped.note !== undefined) note(from, place, key, mapped.note)
}

function mapSafely(map: () => Taken['mapped']): Taken['mapped'] {
  try {
    return map()
  } catch (error) {
    return { note: error instanceof Error ? error.message : String(error) }
  }
}

/** Keys of an entry; a value that cannot be read is a note instead. */
function keysOf<T extends object>(
  from: Importing,
  { place, setting, map }: { place: string; setting: string; map: () => T },
): T | undefined {
  try {
    return map()
  } catch (error) {
    note(from, place, setting, error instanceof Error ? error.message : String(error))
    return undefined
  }
}

const databaseKeys: Readonly<Record<string, (value: string) => Table>> = {
  dbname: (value) => ({ database_name: value }),
  user: (value) => ({ user: value }),
  password: (value) => ({ password: value }),
  pool_size: (value) => ({ pool_size: number(value) }),
  min_pool_size: (value) => ({ min_pool_size: number(value) }),
  pool_mode: (value) => ({ pooler_mode: value }),
  server_lifetime: (value) => ({ server_lifetime: number(value) * 1000 }),
}

const databaseReasons: Readonly<Record<string, string>> = {
  reserve_pool_size: 'counts for all databases: [general] reserve_pool_size',
  reserve_pool: 'counts for all databases: [general] reserve_pool_size',
  max_db_connections: 'counts for all databases: [general] max_db_connections',
  max_db_client_connections: 'has no equal',
  connect_query: 'has no equal: ALTER DATABASE … SET on the server does it',
  client_encoding: 'clients have their own: ALTER DATABASE … SET on the server',
  datestyle: 'clients have their own: ALTER DATABASE … SET on the server',
  timezone: 'clients have their own: ALTER DATABASE … SET on the server',
  load_balance_hosts: 'reads are spread by [general] load_balancing_strategy',
  auth_dbname: 'users are looked up in the database itself',
  auth_query: 'written once, for all databases, at the user that runs it',
  auth_user: 'written once, for all databases, at the user that runs it',
}

function portsOf({ key, place }: IniEntry, written: string, from: Importing): readonly number[] {
  const map = () => written.split(',').map(number)
  return keysOf(from, { place, setting: `${key}.port`, map }) ?? [5432]
}

/** Where Debian's servers have their socket. */
const socketDirectory = '/var/run/postgresql'

function databaseTables(entry: IniEntry, from: Importing): Table[] {
  const { key: name, place } = entry
  const pairs = readPairs(entry)
  if (name === '*') {
    note(from, place, '*', 'databases have names here: write one [[databases]] for each')
    return []
  }
  const rest: Table = {}
  for (const [key, value] of pairs) {
    if (key === 'host' || key === 'port') continue
    const map = databaseKeys[key]
    const setting = `${name}.${key}`
    if (map) Object.assign(rest, keysOf(from, { place, setting, map: () => map(value) }))
    else note(from, place, setting, databaseReasons[key] ?? 'is not known')
  }
  const host = pairs.get('host')
  if (host === undefined) {
    note(
      from,
      place,
      `${name}.host`,
      `none there means a Unix socket: ${socketDirectory} is written`,
    )
  }
  const hosts = (host ?? socketDirectory).split(',').map((one) => one.trim())
  const ports = portsOf(entry, pairs.get('port') ?? '5432', from)
  if (hosts.length > 1) {
    note(from, place, `${name}.host`, 'role = "auto" finds out which of them takes writes')
  }
  return hosts.map((one, index) => ({
    name,
    host: one,
    port: ports[index] ?? ports[0]!,
    ...(hosts.length > 1 ? { role: 'auto' } : {}),
    ...rest,
  }))
}

const userKeys: Readonly<Record<string, (value: string) => Table>> = {
  pool_mode: (value) => ({ pooler_mode: value }),
  pool_size: (value) => ({ pool_size: number(value) }),
  max_user_client_connections: (value) => ({ max_user_client_connections: number(value) }),
}

const userReasons: Readonly<Record<string, string>> = {
  max_user_connections: 'counts for all users: [general] max_user_connections',
  reserve_pool_size: 'counts for all users: [general] reserve_pool_size',
  client_idle_timeout: 'counts for all users: [general] client_idle_timeout',
  idle_transaction_timeout: 'counts for all users: [general] client_idle_in_transaction_timeout',
  query_timeout: 'counts for all users: [general] query_timeout',
  transaction_timeout: 'set transaction_timeout of PostgreSQL 17 on the role',
}

/** A secret of userlist.txt may be a password, a SCRAM verifier or an md5 hash. */
function secretOf({ name, secret }: ListedUser, place: string, from: Importing): Table {
  if (secret.startsWith('SCRAM-SHA-256$')) {
    note(
      from,
      place,
      name,
      'a SCRAM verifier lets clients in, and opens no server: add server_password, or the password itself',
    )
    return { password_hash: secret, auth_type: 'scram' }
  }
  if (/^md5[0-9a-f]{32}$/.test(secret)) {
    note(from, place, name, 'an md5 hash is of no use here: write the password')
    return {}
  }
  return secret === '' ? {} : { password: secret }
}

const lookUp = 'SELECT usename, passwd FROM pg_shadow WHERE usename=$1'

/** From auth_file, [users], and auth_user, in this order. */
function userTables(from: Importing): Table[] {
  const tables = new Map<string, Table>()
  const tableOf = (name: string): Table => {
    const table = tables.get(name) ?? { name, all_databases: true }
    tables.set(name, table)
    return table
  }
  const file = from.settings.get('auth_file')
  for (const user of file ? readUserList(resolve(from.base, file.value)) : []) {
    Object.assign(tableOf(user.name), secretOf(user, file!.place, from))
  }
  for (const entry of from.users) {
    for (const [key, value] of readPairs(entry)) {
      const map = userKeys[key]
      const [place, setting] = [entry.place, `${entry.key}.${key}`]
      if (map)
        Object.assign(tableOf(entry.key), keysOf(from, { place, setting, map: () => map(value) }))
      else note(from, place, setting, userReasons[key] ?? 'is not known')
    }
  }
  const lookupUser = from.settings.get('auth_user')?.value ?? databaseAuthUser(from)
  if (lookupUser) {
    tableOf(lookupUser)['auth_query'] = from.settings.get('auth_query')?.value ?? lookUp
  }
  return [...tables.values()]
}

const databaseAuthUser = (from: Importing): string | undefined =>
  from.databases.flatMap((entry) => readPairs(entry).get('auth_user') ?? [])[0]

function adminTable(from: Importing, users: readonly Table[]): Table | undefined {
  const listed = from.settings.get('admin_users')
  const [first, ...others] = listed?.value.split(',').map((name) => name.trim()) ?? []
  if (!listed || !first) return undefined
  if (others.length > 0) {
    note(
      from,
      listed.place,
      'admin_users',
      `one user of the console: left out ${others.join(', ')}`,
    )
  }
  const password = users.find(({ name }) => name === first)?.['password']
  if (password === undefined) {
    note(from, listed.place, 'admin_users', 'write [admin] password: without one nobody gets in')
  }
  return { name: 'pgbouncer', user: first, ...(password === undefined ? {} : { password }) }
}

const tomlValue = (value: TomlValue): string => JSON.stringify(value)

const tomlTable = (header: string, table: Table): string =>
  [header, ...Object.entries(table).map(([key, value]) => `${key} = ${tomlValue(value)}`), ''].join(
    '\n',
  )

function checkTogether(from: Importing, general: Table): void {
  const file = from.settings.get('stats_users')
  if (file && file.value !== '') {
    note(from, file.place, 'stats_users', 'the console has one user, who may do everything')
  }
  if (from.settings.get('auth_type')?.value === 'hba' && general['hba_file'] === undefined) {
    note(from, from.settings.get('auth_type')!.place, 'auth_type', 'hba needs auth_hba_file')
  }
  const certificates = ['tls_certificate', 'tls_private_key'].filter((key) => key in general)
  if (certificates.length === 0 && general['tls_client_required'] === true) {
    const { place } = from.settings.get('client_tls_sslmode')!
    note(
      from,
      place,
      'client_tls_sslmode',
      'TLS needs client_tls_cert_file and client_tls_key_file',
    )
  }
}

/** `base`: where relative paths in the files start. @throws FILE_MISSING, USAGE */
export function importPgbouncer(path: string, base: string): ImportedConfig {
  const entries = readIni(path, base)
  const of = (section: string) => [
    ...byKey(entries.filter((one) => one.section === section)).values(),
  ]
  const from: Importing = {
    base,
    settings: byKey(of('pgbouncer')),
    databases: of('databases'),
    users: of('users'),
    notes: [],
  }
  for (const { key, place } of of('peers')) {
    note(from, place, `peers.${key}`, 'processes that share a port are one serve --workers N')
  }
  const general = generalTable(from)
  const databases = from.databases.flatMap((entry) => databaseTables(entry, from))
  const users = userTables(from)
  const admin = adminTable(from, users)
  checkTogether(from, general)
  const head = (what: string) => `# ${what} of ${path}, by pgshard config import.\n`
  return {
    pgdogToml: [
      head('Settings and databases'),
      tomlTable('[general]', general),
      ...databases.map((table) => tomlTable('[[databases]]', table)),
    ].join('\n'),
    usersToml: [
      head('Users'),
      ...(admin ? [tomlTable('[admin]', admin)] : []),
      ...users.map((table) => tomlTable('[[users]]', table)),
    ].join('\n'),
    databases: new Set(databases.map(({ name }) => name)).size,
    users: users.length,
    notes: from.notes,
  }
}
