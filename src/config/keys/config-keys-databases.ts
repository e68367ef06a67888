/** Keys of [[databases]], [[users]] and [admin]. Descriptions only. */

import { poolerModes } from './config-keys-pool.js'
import { sameForSingle } from './config-keys-routing.js'
import { authTypes } from './config-keys-service.js'
import { boolean, duration, integer, oneOf, path, string, strings } from './key-types.js'

const perRole = {
  pool_size_primary: integer(undefined, 'pool_size for primaries.', { min: 1 }),
  pool_size_replica: integer(undefined, 'pool_size for replicas.', { min: 1 }),
  min_pool_size_primary: integer(undefined, 'min_pool_size for primaries.'),
  min_pool_size_replica: integer(undefined, 'min_pool_size for replicas.'),
  idle_timeout_primary: duration(undefined, 'idle_timeout for primaries.'),
  idle_timeout_replica: duration(undefined, 'idle_timeout for replicas.'),
} as const

const poolOverrides = {
  pool_size: integer(undefined, 'Instead of general.default_pool_size.', {
    min: 1,
    alias: 'max_pool_size',
  }),
  min_pool_size: integer(undefined, 'Instead of general.min_pool_size.'),
  pooler_mode: oneOf(poolerModes, undefined, 'Instead of general.pooler_mode.'),
  idle_timeout: duration(undefined, 'Instead of general.idle_timeout.'),
  server_lifetime: duration(undefined, 'Instead of general.server_lifetime.'),
  server_lifetime_jitter: duration(undefined, 'Instead of general.server_lifetime_jitter.'),
  statement_timeout: duration(undefined, 'statement_timeout of the server connections.'),
  lock_timeout: duration(undefined, 'lock_timeout of the server connections.'),
  ...perRole,
} as const

export const databaseKeys = {
  name: string(
    undefined,
    'Name that clients connect to; entries of one name are the hosts of one database.',
    { required: true },
  ),
  host: string(undefined, 'Host name, address, or directory of a Unix socket.', { required: true }),
  port: integer(5432, 'Port.', { min: 1, max: 65_535 }),
  role: oneOf(['primary', 'replica', 'auto'], 'primary', 'auto: found out by looking.'),
  shard: integer(0, 'Number of the shard, from 0 without gaps.', { max: 65_535 }),
  database_name: string(
    undefined,
    'Name of the database on the server; that of the entry when absent.',
  ),
  user: string(undefined, "User on the server, instead of the client's."),
  password: string(undefined, 'Its password.', { secret: true }),
  read_only: boolean(undefined, 'Sets default_transaction_read_only on the server connections.'),
  resharding_only: boolean(false, 'Read by reshard only, never by clients.'),
  lb_weight: integer(255, 'Share of the reads, relative to the other hosts.', { max: 255 }),
  ...poolOverrides,
} as const

export const userKeys = {
  name: string(undefined, 'Name of the user.', { required: true }),
  database: string('', 'Database that the user may connect to.'),
  databases: strings('Several of them.'),
  all_databases: boolean(false, 'All of them.'),
  password: string(undefined, 'Password of the client, and towards the server.', { secret: true }),
  passwords: strings('Several, all tried.', { secret: true }),
  password_hash: string(
    undefined,
    "SCRAM verifier of the client's password (pgshard hash-password); needs server_password.",
    { secret: true },
  ),
  auth_type: oneOf(authTypes, undefined, 'Instead of general.auth_type.'),
  auth_query: string(
    undefined,
    'Query with $1 = user name that returns name and verifier; the user runs it on shard 0.',
    { own: true },
  ),
  max_user_client_connections: integer(
    undefined,
    'Instead of general.max_user_client_connections.',
    { own: true, min: 1 },
  ),
  identity: string(undefined, 'Name in the client certificate that lets this user in.'),
  tls_client_certificate_required: boolean(
    undefined,
    'No entry without a certificate; true when tls_client_ca_certificate is set.',
  ),
  server_user: string(undefined, 'User towards the server.'),
  server_password: string(undefined, 'Its password.', { secret: true }),
  server_auth: oneOf(
    ['password', 'rds_iam', 'azure_workload_identity', 'vault_dynamic', 'vault_static'],
    'password',
    "Where the server's password comes from.",
  ),
  server_iam_region: string(undefined, 'Region for rds_iam.'),
  server_vault_path: string(undefined, "Path in Vault of the server's credentials."),
  vault_refresh_percent: integer(80, 'Part of their life after which they are fetched again.', {
    min: 1,
    max: 80,
  }),
  vault_path: path("Path in Vault of the client's password."),
  replication_mode: boolean(false, 'The user may open replication connections.'),
  replication_sharding: string(undefined, 'Database whose sharding filters the replicated rows.'),
  read_only: boolean(
    undefined,
    'Sets default_transaction_read_only, and reads stay off the primary while a replica is up.',
  ),
  schema_admin: boolean(false, 'Used by reshard and setup to make objects.'),
  cross_shard_disabled: boolean(undefined, 'Instead of general.cross_shard_disabled.'),
  two_phase_commit: boolean(undefined, 'Instead of general.two_phase_commit.'),
  two_phase_commit_auto: boolean(undefined, 'Instead of general.two_phase_commit_auto.', {
    unused: sameForSingle,
  }),
  ...poolOverrides,
} as const

export const adminKeys = {
  name: string(
    'admin',
    'Database name of the console; pgdog, pgshard and pgbouncer lead there too.',
  ),
  user: string('admin', 'User of the console.'),
  password: string(undefined, 'Its password; without one nobody gets in.', { secret: true }),
} as const
