/** Settings of [pgbouncer] → keys of [general]: what each becomes, or why it becomes nothing. */

/** What a setting becomes: keys with values, a reason, or both. */
export interface Mapped {
  readonly keys?: Readonly<Record<string, TomlValue>>
  readonly note?: string
}

export type TomlValue = string | number | boolean | readonly string[]

type Map_ = (value: string) => Mapped

/** @throws what is wrong with it, in words */
export const number = (value: string): number => {
  const read = Number(value)
  if (!Number.isFinite(read) || value.trim() === '') throw new Error(`"${value}" is not a number`)
  return read
}

const whole =
  (key: string): Map_ =>
  (value) => ({ keys: { [key]: Math.trunc(number(value)) } })

/** Seconds there, milliseconds here. */
const seconds =
  (key: string): Map_ =>
  (value) => ({ keys: { [key]: Math.round(number(value) * 1000) } })

/** 0 is no limit there; here the key is left out. */
const unless0 =
  (map: Map_): Map_ =>
  (value) =>
    number(value) === 0 ? {} : map(value)

/** 0 is no limit there, and has no equal here. */
const noZero =
  (map: Map_, note: string): Map_ =>
  (value) =>
    number(value) === 0 ? { note } : map(value)

const path =
  (key: string): Map_ =>
  (value) =>
    value === '' ? {} : { keys: { [key]: value } }

const yes = new Set(['1', 'yes', 'on', 'true', 't', 'y'])

const flag =
  (key: string): Map_ =>
  (value) => ({ keys: { [key]: yes.has(value.toLowerCase()) } })

const nothing =
  (note: string): Map_ =>
  () => ({ note })

const authTypes: Readonly<Record<string, Mapped>> = {
  md5: { keys: { auth_type: 'md5' } },
  'scram-sha-256': { keys: { auth_type: 'scram' } },
  plain: { keys: { auth_type: 'plain' } },
  trust: { keys: { auth_type: 'trust' } },
  any: {
    keys: { auth_type: 'trust' },
    note: 'any user name is let in there; here it must be in users.toml',
  },
  hba: { keys: { auth_type: 'md5' } },
  cert: {
    note: 'clients by certificate are users with identity in users.toml, and tls_client_ca_certificate',
  },
  pam: { note: 'PAM is not there' },
  ldap: { note: 'LDAP is not there' },
}

const clientTls: Readonly<Record<string, Mapped>> = {
  disable: {},
  allow: {},
  prefer: {},
  require: { keys: { tls_client_required: true } },
  'verify-ca': { keys: { tls_client_required: true } },
  'verify-full': { keys: { tls_client_required: true } },
}

const serverTls: Readonly<Record<string, Mapped>> = {
  disable: { keys: { tls_verify: 'disabled' } },
  allow: { keys: { tls_verify: 'prefer' }, note: 'TLS is tried first here' },
  prefer: { keys: { tls_verify: 'prefer' } },
  require: {
    keys: { tls_verify: 'prefer' },
    note: 'TLS without a check of the certificate cannot be made a must: use verify_ca with tls_server_ca_certificate',
  },
  'verify-ca': { keys: { tls_verify: 'verify_ca' } },
  'verify-full': { keys: { tls_verify: 'verify_full' } },
}

const oneOf =
  (table: Readonly<Record<string, Mapped>>): Map_ =>
  (value) =>
    table[value.toLowerCase()] ?? { note: `"${value}" is not a value of PgBouncer's` }

const always = 'is so here in any case'
const notHere = 'has no equal'

/** What PgBouncer does when a setting is not written, where that is not what we would do. */
export const defaults: Readonly<Record<string, string>> = {
  listen_port: '6432',
  pool_mode: 'session',
  max_client_conn: '100',
  default_pool_size: '20',
  min_pool_size: '0',
  server_lifetime: '3600',
  server_idle_timeout: '600',
  server_connect_timeout: '15',
  query_wait_timeout: '120',
  client_login_timeout: '60',
  auth_type: 'md5',
  server_tls_sslmode: 'prefer',
  reserve_pool_timeout: '5',
}

export const settingMap: Readonly<Record<string, Map_>> = {
  listen_addr: (value) => {
    const [first = '', ...others] = value.split(',').map((one) => one.trim())
    const keys = { host: first === '*' ? '0.0.0.0' : first }
    return others.length === 0
      ? { keys }
      : { keys, note: `one address only: left out ${others.join(', ')}` }
  },
  listen_port: whole('port'),
  listen_backlog: whole('listen_backlog'),
  unix_socket_dir: path('unix_socket_dir'),
  pool_mode: (value) => ({ keys: { pooler_mode: value } }),
  max_client_conn: whole('max_client_conn'),
  default_pool_size: noZero(whole('default_pool_size'), 'a pool has a limit here'),
  min_pool_size: whole('min_pool_size'),
  reserve_pool_size: whole('reserve_pool_size'),
  reserve_pool_timeout: seconds('reserve_pool_timeout'),
  max_db_connections: unless0(whole('max_db_connections')),
  max_user_connections: unless0(whole('max_user_connections')),
  max_user_client_connections: unless0(whole('max_user_client_connections')),
  server_lifetime: seconds('server_lifetime'),
  server_idle_timeout: noZero(seconds('idle_timeout'), 'idle servers are always closed in the end'),
  server_connect_timeout: noZero(seconds('connect_timeout'), 'connecting has a limit here'),
  server_login_retry: nothing('a host that fails rests for ban_timeout'),
  server_check_delay: seconds('healthcheck_interval'),
  query_wait_timeout: noZero(seconds('checkout_timeout'), 'waiting has a limit here'),
  query_timeout: unless0(seconds('query_timeout')),
  client_idle_timeout: unless0(seconds('client_idle_timeout')),
  idle_transaction_timeout: unless0(seconds('client_idle_in_transaction_timeout')),
  client_login_timeout: noZero(seconds('client_login_timeout'), 'a login has a limit here'),
  dns_max_ttl: seconds('dns_ttl'),
  stats_period: noZero(seconds('stats_period'), 'a window has a length'),
  log_connections: flag('log_connections'),
  log_disconnections: flag('log_disconnections'),
  max_prepared_statements: (value) =>
    number(value) === 0
      ? { note: 'prepared statements are carried to the servers here, which needs no limit' }
      : { keys: { prepared_statements_limit: number(value) } },
  auth_type: oneOf(authTypes),
  auth_hba_file: path('hba_file'),
  client_tls_sslmode: oneOf(clientTls),
  client_tls_key_file: path('tls_private_key'),
  client_tls_cert_file: path('tls_certificate'),
  client_tls_ca_file: path('tls_client_ca_certificate'),
  client_tls_protocols: (value) => {
    if (/^tlsv1\.3$/i.test(value)) return { keys: { tls_min_version: 'TLSv1.3' } }
    return /tlsv1\.[01]|\ball\b|legacy/i.test(value) ? { note: 'TLS is 1.2 or newer here' } : {}
  },
  server_tls_sslmode: oneOf(serverTls),
  server_tls_ca_file: path('tls_server_ca_certificate'),
  server_tls_cert_file: path('tls_server_certificate'),
  server_tls_key_file: path('tls_server_private_key'),
  tcp_keepalive: (value) =>
    yes.has(value.toLowerCase()) ? {} : { note: '[tcp] keepalive = false turns it off' },
  so_reuseport: (value) =>
    yes.has(value) ? { note: 'several processes are one serve --workers N here' } : {},
  server_reset_query: nothing('servers are cleaned by what their client has left behind'),
  server_reset_query_always: nothing('servers are cleaned by what their client has left behind'),
  server_check_query: nothing('a server is checked by an empty request'),
  ignore_startup_parameters: nothing('startup parameters are carried to the servers'),
  track_extra_parameters: nothing('all parameters are tracked'),
  pidfile: (value) => ({ note: `a flag: pgshard serve --pid-file ${value}` }),
  logfile: nothing('the log goes to stderr: let systemd or the shell write it'),
  user: nothing('start it as that user'),
  peer_id: nothing('processes that share a port are one serve --workers N, which forwards cancels'),
  server_round_robin: (value) =>
    yes.has(value) ? { note: 'the server that was used last is lent first' } : {},
  log_stats: nothing('statistics are on the console and on openmetrics_port'),
  log_pooler_errors: nothing(`${always}`),
  tcp_defer_accept: nothing(notHere),
  tcp_keepcnt: nothing("Node.js cannot set it; the system's value counts"),
  tcp_keepidle: unless0(() => ({ note: 'write [tcp] time, in milliseconds' })),
  tcp_keepintvl: nothing("Node.js cannot set it; the system's value counts"),
  tcp_user_timeout: unless0(() => ({ note: "Node.js cannot set it; the system's value counts" })),
  transaction_timeout: unless0(() => ({
    note: 'set transaction_timeout of PostgreSQL 17 on the role, or statement_timeout of the user here',
  })),
  disable_pqexec: (value) =>
    yes.has(value)
      ? { note: 'several statements in one request are answered as PostgreSQL does' }
      : {},
  application_name_add_host: (value) => (yes.has(value) ? { note: notHere } : {}),
  server_fast_close: (value) => (yes.has(value) ? { note: notHere } : {}),
  suspend_timeout: nothing(notHere),
  cancel_wait_timeout: nothing(notHere),
  autodb_idle_timeout: nothing(notHere),
  dns_nxdomain_ttl: nothing(notHere),
  dns_zone_check_period: nothing(notHere),
  resolv_conf: nothing(notHere),
  max_packet_size: nothing(notHere),
  pkt_buf: nothing('buffers are sized by what is measured to be fast'),
  sbuf_loopcnt: nothing('buffers are sized by what is measured to be fast'),
  tcp_socket_buffer: nothing("the system's value counts"),
  unix_socket_mode: nothing(notHere),
  unix_socket_group: nothing(notHere),
  scram_iterations: nothing(notHere),
  syslog: (value) => (yes.has(value) ? { note: 'the log goes to stderr' } : {}),
  syslog_ident: nothing('the log goes to stderr'),
  syslog_facility: nothing('the log goes to stderr'),
  job_name: nothing(notHere),
  service_name: nothing(notHere),
  conffile: nothing(notHere),
  verbose: nothing('log_level = "debug"'),
  query_wait_notify: nothing(notHere),
  auth_ident_file: nothing('maps of user names are not there'),
  auth_ldap_options: nothing('LDAP is not there'),
  client_tls_ciphers: nothing("Node.js's own list of ciphers counts"),
  client_tls_dheparams: nothing("Node.js's own list of ciphers counts"),
  client_tls_ecdhcurve: nothing("Node.js's own list of ciphers counts"),
  client_tls13_ciphers: nothing("Node.js's own list of ciphers counts"),
  server_tls_ciphers: nothing("Node.js's own list of ciphers counts"),
  server_tls13_ciphers: nothing("Node.js's own list of ciphers counts"),
  server_tls_protocols: nothing('tls_min_version counts for both sides'),
}

/** Read elsewhere: they make users. */
export const userSettings = new Set([
  'auth_file',
  'auth_user',
  'auth_query',
  'auth_dbname',
  'admin_users',
  'stats_users',
])
