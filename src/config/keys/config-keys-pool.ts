/** Keys of [general] on listening, pools, limits, health and balancing. Descriptions only. */
import {
  boolean,
  bytes,
  duration,
  integer,
  oneOf,
  path,
  string,
  strings,
  unlimited,
} from './key-types.js'

export const poolerModes = ['transaction', 'session', 'statement'] as const
const recovery = ['recover', 'rollback_only', 'drop'] as const

export const listenKeys = {
  host: string('0.0.0.0', 'Address to listen on.', { takesEffect: 'restart' }),
  port: integer(6432, 'Port to listen on; 0 takes a free one.', {
    max: 65_535,
    takesEffect: 'restart',
  }),
  workers: integer(
    2,
    'Processes that accept on the port, with workers_mode = "processes"; PgDog counts threads here.',
    {
      takesEffect: 'restart',
    },
  ),
  workers_mode: oneOf(
    ['single', 'processes'],
    'single',
    'One process, or as many as workers says, each with its share of every limit.',
    {
      own: true,
      takesEffect: 'restart',
    },
  ),
  worker_timeout: duration(
    15_000,
    'A worker process whose event loop stands still so long is ended and replaced; 0: never.',
    { own: true, takesEffect: 'restart' },
  ),
  listen_backlog: integer(1024, 'Connections that may wait to be accepted.', {
    min: 1,
    takesEffect: 'restart',
  }),
  unix_socket_dir: string(undefined, 'Directory for a Unix socket `.s.PGSQL.<port>`.', {
    own: true,
    takesEffect: 'restart',
  }),
  max_client_conn: integer(unlimited, 'Clients at one time; more are refused with 53300.', {
    own: true,
    min: 1,
  }),
  max_user_client_connections: integer(
    unlimited,
    'Clients of one user at one time; more are refused with 53300.',
    { own: true, min: 1 },
  ),
  hba: strings(
    'Rules in the form of pg_hba.conf lines, first match wins; empty: auth_type for everybody.',
    { own: true, takesEffect: 'new connections' },
  ),
  hba_file: path('File with such rules, instead of hba.', {
    own: true,
    takesEffect: 'new connections',
  }),
} as const

export const poolKeys = {
  default_pool_size: integer(10, 'Server connections at most for each user, database and host.', {
    min: 1,
  }),
  min_pool_size: integer(1, 'Server connections kept open for each user, database and host.'),
  reserve_pool_size: integer(
    0,
    'Extra server connections of a pool for clients that waited long.',
    { own: true },
  ),
  reserve_pool_timeout: duration(
    1_000,
    'A client that has waited this long may have a connection of the reserve.',
    { own: true },
  ),
  max_db_connections: integer(
    unlimited,
    'Server connections at most to one host for one database, over all users.',
    { own: true, min: 1 },
  ),
  max_user_connections: integer(
    unlimited,
    'Server connections at most of one user, over all databases and hosts.',
    { own: true, min: 1 },
  ),
  pooler_mode: oneOf(
    poolerModes,
    'transaction',
    'When a server connection is released: after each transaction, session or statement.',
  ),
  idle_timeout: duration(
    60_000,
    'Idle server connections above the minimum are closed after this.',
  ),
  server_lifetime: duration(86_400_000, 'Age at which a server connection is replaced.'),
  server_lifetime_jitter: duration(0, 'Random spread of server_lifetime, up and down.'),
  checkout_timeout: duration(
    5_000,
    'How long a client waits for a server connection before it gets an error.',
  ),
  connect_timeout: duration(5_000, 'Time to open and authenticate a server connection.'),
  connect_attempts: integer(1, 'Attempts to open a server connection.', { min: 1 }),
  connect_attempt_delay: duration(0, 'Pause between two attempts.'),
  rollback_timeout: duration(
    5_000,
    'Time for the ROLLBACK of a transaction that a client left open; then the connection is closed.',
  ),
  connection_recovery: oneOf(
    recovery,
    'recover',
    'What becomes of a server connection whose client vanished.',
  ),
  client_connection_recovery: oneOf(
    recovery,
    'recover',
    'What becomes of a client that got no server connection: it hears the error and stays, or is disconnected (drop).',
  ),
  query_timeout: duration(
    unlimited,
    'Time for one request; then the server connection is closed and the client gets an error.',
  ),
  client_idle_timeout: duration(unlimited, 'Idle clients are disconnected after this (57P05).'),
  client_idle_in_transaction_timeout: duration(
    unlimited,
    'Clients idle in a transaction are disconnected after this (25P03).',
  ),
  client_login_timeout: duration(60_000, 'Time to authenticate.', {
    env: 'PGDOG_CLIENT_LOG_TIMEOUT',
  }),
  shutdown_timeout: duration(60_000, 'Time for clients to finish at a stop.'),
  shutdown_termination_timeout: duration(
    undefined,
    'After shutdown_timeout running statements are cancelled and get this long to end; none: clients are cut at once.',
  ),
} as const

export const pipelineKeys = {
  pipeline_depth: integer(
    16,
    'Reads of different clients that may stand behind one another on a server connection; 0 turns pipelining off.',
    { own: true, max: 1024 },
  ),
  pipeline_stall_ms: duration(
    20,
    'A read unfinished after this has its followers run again elsewhere.',
    { own: true, min: 1 },
  ),
  pipeline_reply_buffer: bytes(
    262_144,
    'Reply kept for a slow client at the head before its followers move.',
    { own: true },
  ),
  assume_clean_functions: strings(
    'Functions that leave no session state behind, as names with or without schema.',
    { own: true },
  ),
} as const

export const healthKeys = {
  healthcheck_interval: duration(
    30_000,
    'A connection whose last check is so long ago is checked before it is lent.',
  ),
  idle_healthcheck_interval: duration(
    30_000,
    'Pause between checks of idle connections; 0 turns them off.',
  ),
  idle_healthcheck_delay: duration(5_000, 'Pause before the first such check.'),
  healthcheck_timeout: duration(5_000, 'Time for a check; then the host is banned.'),
  healthcheck_port: integer(
    undefined,
    'HTTP port that answers 200 when up, 502 when every pool is unhealthy.',
    { max: 65_535, takesEffect: 'restart' },
  ),
  require_healthcheck_on_discovery: boolean(
    false,
    'New hosts take no traffic until a check passed.',
  ),
  ban_timeout: duration(300_000, 'How long a failing host gets no traffic; 0: never banned.'),
  ban_replica_lag: duration(unlimited, 'A replica this far behind is banned.'),
  ban_replica_lag_bytes: bytes(unlimited, 'The same in bytes of WAL.'),
  load_balancing_strategy: oneOf(
    [
      'random',
      'round_robin',
      'least_active_connections',
      'weighted_round_robin',
      'best_response_time',
      'server_affinity',
    ],
    'random',
    'How reads are spread over hosts.',
  ),
  read_write_strategy: oneOf(
    ['conservative', 'aggressive'],
    'conservative',
    'Explicit transactions go to the primary, or where their first statement belongs.',
  ),
  read_write_split: oneOf(
    ['include_primary', 'exclude_primary', 'include_primary_if_replica_banned', 'prefer_primary'],
    'include_primary',
    'Whether the primary takes reads.',
  ),
  read_your_writes: boolean(
    false,
    'Reads after a commit of the same client see it, on replicas too.',
    { own: true },
  ),
  lsn_check_delay: duration(
    unlimited,
    'Pause before hosts with a fixed role are watched too; unlimited: only when a lag limit or read_your_writes needs it.',
  ),
  lsn_check_interval: duration(
    5_000,
    'Pause between two looks at what a host is (role = "auto") and how far.',
  ),
  lsn_check_timeout: duration(5_000, 'Time for one look.'),
  dns_ttl: duration(undefined, 'Names of hosts are resolved again after this.'),
} as const
