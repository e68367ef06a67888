/** Keys of [general] on TLS, authentication, logs, metrics, the console and mirroring. Descriptions only. */
import { boolean, duration, fraction, integer, oneOf, path, string, strings } from './key-types.js'

export const authTypes = ['scram', 'md5', 'trust', 'plain'] as const

export const securityKeys = {
  tls_certificate: path('Certificate shown to clients; needs tls_private_key.', {
    takesEffect: 'new connections',
  }),
  tls_private_key: path('Its private key.', { takesEffect: 'new connections' }),
  tls_client_required: boolean(false, 'Clients without TLS are refused (08004).', { env: null }),
  tls_min_version: oneOf(
    ['TLSv1.2', 'TLSv1.3'],
    'TLSv1.2',
    'Oldest version of TLS, with clients and with servers.',
    { own: true, takesEffect: 'new connections' },
  ),
  tls_client_ca_certificate: path('Authorities whose client certificates are accepted.', {
    takesEffect: 'new connections',
  }),
  tls_verify: oneOf(
    ['disabled', 'prefer', 'verify_ca', 'verify_full'],
    'prefer',
    'TLS to the servers, and how much of their certificate is checked.',
    { takesEffect: 'new connections' },
  ),
  tls_server_negotiation: oneOf(
    ['postgres', 'direct'],
    'postgres',
    'How TLS to the servers begins; direct saves a round trip and needs PostgreSQL 17 and tls_verify other than prefer.',
    { own: true, takesEffect: 'new connections' },
  ),
  tls_server_channel_binding: oneOf(
    ['disable', 'prefer', 'require'],
    'prefer',
    'SCRAM-SHA-256-PLUS towards the servers.',
    { own: true, takesEffect: 'new connections' },
  ),
  tls_server_ca_certificate: path('Authorities of the servers.', {
    takesEffect: 'new connections',
  }),
  tls_server_certificate: path('Certificate shown to the servers.', {
    takesEffect: 'new connections',
  }),
  tls_server_private_key: path('Its private key.', { takesEffect: 'new connections' }),
  auth_type: oneOf(authTypes, 'scram', 'How clients prove who they are.', {
    takesEffect: 'new connections',
  }),
  passthrough_auth: oneOf(
    ['disabled', 'enabled', 'enabled_plain', 'enabled_allow_change', 'enabled_plain_allow_change'],
    'disabled',
    'Users that are not in users.toml are let in with the password that the server accepts; without "plain" TLS is needed.',
    { takesEffect: 'new connections' },
  ),
  auth_query_ttl: duration(
    30_000,
    'How long a verifier found by auth_query, or a password that the server has accepted, is believed.',
    { own: true, takesEffect: 'new connections' },
  ),
} as const

export const logKeys = {
  log_min_duration_parse: duration(undefined, 'Statements whose parsing takes longer are logged.'),
  log_min_duration_statement: duration(
    undefined,
    'Statements that take so long are logged, without their literals.',
    { own: true, takesEffect: 'new connections' },
  ),
  log_statement_sample_rate: fraction(1, 'Share of them that is logged.', {
    own: true,
    takesEffect: 'new connections',
  }),
  log_query_sample_length: integer(1000, 'Characters of a statement in the log.'),
  query_log: path('File that gets every statement.'),
  query_log_stdout: boolean(false, 'Every statement goes to the log.'),
  log_format: oneOf(['text', 'json', 'json_flattened'], 'text', 'Form of log lines on stderr.', {
    takesEffect: 'restart',
  }),
  log_level: string('info', 'trace, debug, info, warn, error or off.', { env: 'RUST_LOG' }),
  log_connections: boolean(true, 'A line for each client that connects.'),
  log_disconnections: boolean(true, 'A line for each client that leaves.'),
  log_dedup_window: duration(0, 'Equal lines within this time are counted, not repeated; 0: off.', {
    env: null,
    takesEffect: 'restart',
  }),
  log_dedup_threshold: integer(0, 'Equal lines that are still written before counting begins.', {
    env: null,
    takesEffect: 'restart',
  }),
} as const

export const metricKeys = {
  stats_period: duration(15_000, 'Window of the averages.', { min: 1 }),
  openmetrics_port: integer(undefined, 'HTTP port of the metrics.', {
    max: 65_535,
    takesEffect: 'restart',
  }),
  openmetrics_host: string('0.0.0.0', 'Address of the metrics port.', { takesEffect: 'restart' }),
  openmetrics_namespace: string(undefined, 'Put before every metric name as it is.'),
  web_port: integer(undefined, 'Port of the web page.', {
    own: true,
    max: 65_535,
    takesEffect: 'restart',
  }),
  web_host: string('127.0.0.1', 'Address of the web page.', { own: true, takesEffect: 'restart' }),
  web_token: string(
    undefined,
    'What the web page asks for, at least 16 characters; without it one is made at each start and printed.',
    { own: true, secret: true, takesEffect: 'restart' },
  ),
  broadcast_address: string(undefined, 'Multicast address at which proxies find one another.', {
    unused: 'proxies find one another through schema pgshard of the databases',
  }),
  broadcast_port: integer(6433, 'Its port.', {
    max: 65_535,
    unused: 'proxies find one another through schema pgshard of the databases',
  }),
  mirror_queue: integer(128, 'Default of [[mirroring]] queue_length.'),
  mirror_exposure: fraction(1, 'Default of [[mirroring]] exposure.'),
  pub_sub_channel_size: integer(
    4096,
    'Notifications that may wait for one listening client before it is disconnected; 0: a client that listens keeps its server.',
    { takesEffect: 'new connections' },
  ),
} as const

export const cacheKeys = {
  prepared_statements: oneOf(
    ['disabled', 'extended', 'extended_anonymous', 'full'],
    'extended',
    'Which prepared statements are shared between server connections; full: SQL PREPARE too.',
    { unused: 'all kinds are shared between server connections, SQL PREPARE too' },
  ),
  prepared_statements_limit: integer(
    Number.POSITIVE_INFINITY,
    'Prepared statements on one server connection; the least recently used is closed.',
  ),
  prepared_statements_ttl: duration(
    undefined,
    'Prepared statements are closed and made again after this.',
  ),
  prepared_statements_ttl_jitter: duration(30_000, 'Random spread of it.'),
  query_cache_limit: integer(1000, 'Statements whose plan is kept.'),
  query_size_limit: integer(
    undefined,
    'Bytes of a Query or Parse message above which query_size_limit_action counts.',
  ),
  query_size_limit_action: oneOf(
    ['warn', 'block'],
    'warn',
    'A line in the log, or 54000 and the client is disconnected.',
  ),
  gather_functions: strings(
    'Functions allowed in a statement that is finished on one server with rows of all shards.',
    { own: true },
  ),
} as const
