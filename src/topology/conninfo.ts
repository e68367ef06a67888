/**
 * A connection string of any form, with defaults from service file, environment and .pgpass, as one checked value.
 * Every command connects through this. Reads no file and no environment itself: both are handed in.
 * Source followed: fe-connect.c (conninfo_add_defaults, pqConnectOptions2).
 */
import {
  type ConninfoValues,
  conninfoError,
  conninfoOptions,
  refuseUnsupported,
  storeValue,
} from './conninfo-options.js'
import { parseConninfoText } from './conninfo-text.js'
import { isConninfoUri, parseConninfoUri } from './conninfo-uri.js'
import { passwordFromText } from './pgpass.js'
import { serviceValues } from './service-file.js'

/** What a connection string may lean on; `localEnvironment` in pg/ makes the real one. */
export interface ConninfoEnvironment {
  readonly variables: Readonly<Record<string, string | undefined>>
  /** Name of the operating system's user, the default of `user`. */
  readonly userName: string
  readonly homeDirectory: string
  /** Host when none is given: a socket directory, or "localhost". */
  readonly defaultHost: string
  /** Text of a file; undefined when it does not exist or must not be used. */
  readFile(path: string, kind: 'service' | 'passfile'): string | undefined
}

export const sslModes = [
  'disable',
  'allow',
  'prefer',
  'require',
  'verify-ca',
  'verify-full',
] as const
export type SslMode = (typeof sslModes)[number]

export const targetSessionAttrs = [
  'any',
  'read-write',
  'read-only',
  'primary',
  'standby',
  'prefer-standby',
] as const
export type TargetSessionAttrs = (typeof targetSessionAttrs)[number]

/** One position of the host list. */
export interface ConninfoHost {
  /** Name, address or socket directory; what certificates are checked against and reports show. */
  readonly host: string
  /** Address to connect to without asking a resolver. */
  readonly hostaddr?: string
  readonly port: number
  /** From the connection string, or for this host from .pgpass. */
  readonly password?: string
}

export interface ConninfoTls {
  readonly mode: SslMode
  readonly certificatePath?: string
  readonly keyPath?: string
  readonly keyPassword?: string
  readonly rootCertificatePath?: string
  /** TLS begins at once, without SSLRequest; absent: with it. */
  readonly negotiation?: 'direct'
}

export interface Conninfo {
  readonly hosts: readonly ConninfoHost[]
  readonly user: string
  readonly database: string
  /** Per address; absent: as long as the operating system waits. */
  readonly connectTimeoutMs?: number
  readonly targetSessionAttrs: TargetSessionAttrs
  readonly loadBalanceHosts: 'disable' | 'random'
  readonly tls: ConninfoTls
  /** SCRAM-SHA-256-PLUS; absent: where both sides can. */
  readonly channelBinding?: 'disable' | 'require'
  readonly keepAlive: boolean
  readonly keepAliveIdleMs?: number
  /** Parameters of the startup packet: application_name, client_encoding, options, replication. */
  readonly startupParameters: Readonly<Record<string, string>>
}

/** Flags of a command that win over the text (-h, -p, -U, -d) or keywords that a caller sets. */
export type ConninfoOverrides = Readonly<Record<string, string | undefined>>

/** True when `text` is a connection string, and not just the name of a database. */
export const isConninfo = (text: string): boolean => isConninfoUri(text) || text.includes('=')

/** Keywords as written in `text`, without defaults. */
export function conninfoValues(text: string): ConninfoValues {
  return isConninfoUri(text) ? parseConninfoUri(text) : parseConninfoText(text)
}

/** Reads `text` (keyword/value, URI, or just a database name) and fills in what it leaves open. */
export function parseConninfo(
  text: string,
  environment: ConninfoEnvironment,
  overrides: ConninfoOverrides = {},
): Conninfo {
  const written: ConninfoValues =
    text === '' || isConninfo(text) ? conninfoValues(text) : { dbname: text }
  for (const [keyword, value] of Object.entries(overrides)) {
    if (value !== undefined && !storeValue(written, keyword, value))
      throw conninfoError(`invalid connection option "${keyword}"`)
  }
  const values = withDefaults(written, environment)
  refuseUnsupported(values)
  return checkConninfo(values, environment)
}

function withDefaults(written: ConninfoValues, environment: ConninfoEnvironment): ConninfoValues {
  const values: ConninfoValues = { ...serviceDefaults(written, environment), ...written }
  for (const [keyword, rule] of Object.entries(conninfoOptions)) {
    if (Object.hasOwn(values, keyword)) continue
    const fromEnvironment =
      rule.environment === undefined ? undefined : environment.variables[rule.environment]
    const value = fromEnvironment ?? rule.fallback
    if (value !== undefined) values[keyword] = value
  }
  return values
}

function serviceDefaults(
  written: ConninfoValues,
  environment: ConninfoEnvironment,
): ConninfoValues | undefined {
  const { variables } = environment
  const service = written['service'] ?? variables['PGSERVICE']
  if (service === undefined || service === '') return undefined
  const own = written['servicefile'] ?? variables['PGSERVICEFILE']
  const paths = [
    own ?? `${environment.homeDirectory}/.pg_service.conf`,
    `${variables['PGSYSCONFDIR'] ?? '/etc/postgresql-common'}/pg_service.conf`,
  ]
  let anyFile = false
  for (const path of paths) {
    const text = environment.readFile(path, 'service')
    if (text === undefined && path === own) throw conninfoError(`service file "${path}" not found`)
    anyFile ||= text !== undefined
    const found = text === undefined ? undefined : serviceValues(text, service, path)
    if (found !== undefined) return found
  }
  throw conninfoError(
    `definition of service "${service}" not found${anyFile ? '' : `; neither ${paths.join(' nor ')} exists`}`,
  )
}

/** Splits at commas; an empty text is one empty entry, as libpq counts. */
const list = (text: string | undefined): string[] => (text ?? '').split(',')

function parseInteger(text: string, option: string): number {
  const trimmed = text.trim()
  const value = Number(trimmed)
  if (!/^[+-]?\d+$/.test(trimmed) || Math.abs(value) > 2147483647)
    throw conninfoError(`invalid integer value "${text}" for connection option "${option}"`)
  return value
}

function parsePort(text: string): number {
  if (text.trim() === '') return 5432
  const port = parseInteger(text, 'port')
  if (port < 1 || port > 65535) throw conninfoError(`invalid port number: "${text}"`)
  return port
}

function pairHosts(values: ConninfoValues, defaultHost: string): ConninfoHost[] {
  const addresses = values['hostaddr'] ? list(values['hostaddr']) : undefined
  const names = values['host'] ? list(values['host']) : undefined
  const count = addresses?.length ?? names?.length ?? 1
  if (addresses !== undefined && names !== undefined && names.length !== count)
    throw conninfoError(`could not match ${names.length} host names to ${count} hostaddr values`)
  const ports = list(values['port'])
  if (ports.length !== 1 && ports.length !== count)
    throw conninfoError(`could not match ${ports.length} port numbers to ${count} hosts`)
  return Array.from({ length: count }, (_, i) => {
    const hostaddr = addresses?.[i]
    const host = names?.[i] || hostaddr || defaultHost
    const port = parsePort((ports.length === 1 ? ports[0] : ports[i]) ?? '')
    return { host, port, ...(hostaddr ? { hostaddr } : {}) }
  })
}

function withPasswords(
  hosts: ConninfoHost[],
  values: ConninfoValues,
  user: string,
  database: string,
  environment: ConninfoEnvironment,
): ConninfoHost[] {
  const given = values['password']
  if (given !== undefined && given !== '')
    return hosts.map((host) => ({ ...host, password: given }))
  const path = values['passfile'] || `${environment.homeDirectory}/.pgpass`
  const text = environment.readFile(path, 'passfile')
  if (text === undefined) return hosts
  return hosts.map((host) => {
    const isDefaultSocket = host.host === environment.defaultHost && host.host.startsWith('/')
    const password = passwordFromText(text, {
      host: isDefaultSocket ? 'localhost' : host.host,
      port: String(host.port),
      database,
      user,
    })
    return password === undefined ? host : { ...host, password }
  })
}

function oneOf<T extends string>(values: ConninfoValues, option: string, allowed: readonly T[]): T {
  const value = values[option] || conninfoOptions[option]?.fallback
  const found = allowed.find((known) => known === value)
  if (found === undefined) throw conninfoError(`invalid ${option} value: "${value}"`)
  return found
}

/** libpq: zero, negative or absent means no limit. */
function seconds(values: ConninfoValues, option: string): number | undefined {
  const text = values[option]
  if (text === undefined || text === '') return undefined
  const value = parseInteger(text, option)
  return value > 0 ? value * 1000 : undefined
}

function startupParameters(values: ConninfoValues): Record<string, string> {
  const parameters: Record<string, string> = {}
  const applicationName = values['application_name'] || values['fallback_application_name']
  if (applicationName) parameters['application_name'] = applicationName
  for (const option of ['client_encoding', 'options', 'replication']) {
    const value = values[option]
    if (value) parameters[option] = value
  }
  if (parameters['client_encoding'] === 'auto') parameters['client_encoding'] = 'UTF8'
  return parameters
}

function tlsOf(values: ConninfoValues): ConninfoTls {
  const paths = {
    certificatePath: values['sslcert'],
    keyPath: values['sslkey'],
    keyPassword: values['sslpassword'],
    rootCertificatePath: values['sslrootcert'],
  }
  const given = Object.entries(paths).filter(([, value]) => value !== undefined && value !== '')
  const mode = oneOf(values, 'sslmode', sslModes)
  const negotiation = oneOf(values, 'sslnegotiation', ['postgres', 'direct'] as const)
  const isWeak = ['disable', 'allow', 'prefer'].includes(mode)
  if (negotiation === 'direct' && isWeak)
    throw conninfoError(
      `weak sslmode "${mode}" may not be used with sslnegotiation=direct (use "require", "verify-ca", or "verify-full")`,
    )
  return {
    mode,
    ...Object.fromEntries(given),
    ...(negotiation === 'direct' ? { negotiation } : {}),
  }
}

function checkConninfo(values: ConninfoValues, environment: ConninfoEnvironment): Conninfo {
  const user = values['user'] || environment.userName
  const database = values['dbname'] || user
  const hosts = withPasswords(
    pairHosts(values, environment.defaultHost),
    values,
    user,
    database,
    environment,
  )
  const connectTimeoutMs = seconds(values, 'connect_timeout')
  const keepAliveIdleMs = seconds(values, 'keepalives_idle')
  const binding = oneOf(values, 'channel_binding', ['disable', 'prefer', 'require'] as const)
  return {
    hosts,
    user,
    database,
    targetSessionAttrs: oneOf(values, 'target_session_attrs', targetSessionAttrs),
    loadBalanceHosts: oneOf(values, 'load_balance_hosts', ['disable', 'random'] as const),
    tls: tlsOf(values),
    keepAlive: values['keepalives'] ? parseInteger(values['keepalives'], 'keepalives') !== 0 : true,
    startupParameters: startupParameters(values),
    ...(connectTimeoutMs === undefined ? {} : { connectTimeoutMs }),
    ...(keepAliveIdleMs === undefined ? {} : { keepAliveIdleMs }),
    ...(binding === 'prefer' ? {} : { channelBinding: binding }),
  }
}
