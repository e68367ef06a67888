/**
 * The keywords of a libpq connection string: environment variable, default, and which of them mean something here.
 * Never connects and never reads a file. Source followed: PQconninfoOptions in fe-connect.c.
 */
import { engineError } from '../errors/engine-error.js'

interface OptionRule {
  readonly environment?: string
  readonly fallback?: string
  /** Values that ask for what we do anyway; any other is refused. Absent: every value is honoured. */
  readonly harmless?: readonly string[]
  /** What to use instead, for the hint of a refusal. */
  readonly instead?: string
}

const serverSide = 'the defaults of this machine'

export const conninfoOptions: Readonly<Record<string, OptionRule>> = {
  service: { environment: 'PGSERVICE' },
  servicefile: { environment: 'PGSERVICEFILE' },
  user: { environment: 'PGUSER' },
  password: { environment: 'PGPASSWORD' },
  passfile: { environment: 'PGPASSFILE' },
  dbname: { environment: 'PGDATABASE' },
  host: { environment: 'PGHOST' },
  hostaddr: { environment: 'PGHOSTADDR' },
  port: { environment: 'PGPORT', fallback: '5432' },
  connect_timeout: { environment: 'PGCONNECT_TIMEOUT' },
  client_encoding: { environment: 'PGCLIENTENCODING' },
  options: { environment: 'PGOPTIONS' },
  application_name: { environment: 'PGAPPNAME' },
  fallback_application_name: {},
  replication: {},
  keepalives: {},
  keepalives_idle: {},
  keepalives_interval: { harmless: ['0'], instead: serverSide },
  keepalives_count: { harmless: ['0'], instead: serverSide },
  tcp_user_timeout: { harmless: ['0'], instead: serverSide },
  sslmode: { environment: 'PGSSLMODE', fallback: 'prefer' },
  sslcert: { environment: 'PGSSLCERT' },
  sslkey: { environment: 'PGSSLKEY' },
  sslpassword: {},
  sslrootcert: { environment: 'PGSSLROOTCERT' },
  sslcompression: { environment: 'PGSSLCOMPRESSION', harmless: ['0'], instead: 'sslcompression=0' },
  sslcertmode: {
    environment: 'PGSSLCERTMODE',
    harmless: ['allow'],
    instead: 'sslcertmode=allow',
  },
  sslcrl: { environment: 'PGSSLCRL', harmless: [], instead: 'sslrootcert alone' },
  sslcrldir: { environment: 'PGSSLCRLDIR', harmless: [], instead: 'sslrootcert alone' },
  sslsni: { environment: 'PGSSLSNI', harmless: ['1'], instead: 'sslsni=1' },
  sslnegotiation: { environment: 'PGSSLNEGOTIATION', fallback: 'postgres' },
  ssl_min_protocol_version: {
    environment: 'PGSSLMINPROTOCOLVERSION',
    harmless: ['TLSv1', 'TLSv1.1', 'TLSv1.2'],
    instead: 'ssl_min_protocol_version=TLSv1.2',
  },
  ssl_max_protocol_version: {
    environment: 'PGSSLMAXPROTOCOLVERSION',
    harmless: ['TLSv1.3'],
    instead: 'ssl_max_protocol_version=TLSv1.3',
  },
  requirepeer: { environment: 'PGREQUIREPEER', harmless: [], instead: 'sslmode=verify-full' },
  require_auth: { environment: 'PGREQUIREAUTH', harmless: [], instead: 'sslmode=verify-full' },
  channel_binding: { environment: 'PGCHANNELBINDING', fallback: 'prefer' },
  min_protocol_version: {
    environment: 'PGMINPROTOCOLVERSION',
    harmless: ['3.0'],
    instead: 'min_protocol_version=3.0',
  },
  max_protocol_version: {
    environment: 'PGMAXPROTOCOLVERSION',
    harmless: ['3.0', '3.2', 'latest'],
    instead: 'max_protocol_version=3.0',
  },
  gssencmode: {
    environment: 'PGGSSENCMODE',
    harmless: ['disable', 'prefer'],
    instead: 'gssencmode=disable',
  },
  scram_client_key: { harmless: [], instead: 'password' },
  scram_server_key: { harmless: [], instead: 'password' },
  oauth_issuer: { harmless: [], instead: 'password' },
  oauth_client_id: { harmless: [], instead: 'password' },
  oauth_client_secret: { harmless: [], instead: 'password' },
  oauth_scope: { harmless: [], instead: 'password' },
  sslkeylogfile: { harmless: [], instead: 'NODE_OPTIONS=--tls-keylog' },
  // Without GSSAPI these change nothing, as in a libpq that was built without it.
  krbsrvname: { environment: 'PGKRBSRVNAME' },
  gsslib: { environment: 'PGGSSLIB' },
  gssdelegation: { environment: 'PGGSSDELEGATION' },
  target_session_attrs: { environment: 'PGTARGETSESSIONATTRS', fallback: 'any' },
  load_balance_hosts: { environment: 'PGLOADBALANCEHOSTS', fallback: 'disable' },
}

/** Keyword → value as given, before defaults. */
export type ConninfoValues = Record<string, string>

export const conninfoError = (message: string) => engineError('CONNINFO_INVALID', { message })

/** Stores one value; knows the two old spellings that libpq keeps. False: no such keyword. */
export function storeValue(values: ConninfoValues, keyword: string, value: string): boolean {
  if (keyword === 'requiressl') {
    values['sslmode'] = value.startsWith('1') ? 'require' : 'prefer'
    return true
  }
  if (!Object.hasOwn(conninfoOptions, keyword)) return false
  values[keyword] = value
  return true
}

/** Refuses what would be accepted and then not done. */
export function refuseUnsupported(values: Readonly<ConninfoValues>): void {
  for (const [option, value] of Object.entries(values)) {
    const rule = conninfoOptions[option]
    if (rule?.harmless === undefined || value === '' || rule.harmless.includes(value)) continue
    throw engineError('CONNINFO_UNSUPPORTED', {
      option,
      value,
      instead: rule.instead ?? 'its default',
    })
  }
}
