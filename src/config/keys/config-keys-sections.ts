/** Keys of the smaller sections, and of the sharding tables. Descriptions only. */

import { keyTypes } from '../../datum/key-type.js'
import { alwaysRead, noLookups, parserEngines, parserLevels } from './config-keys-routing.js'
import {
  boolean,
  bytes,
  duration,
  fraction,
  headers,
  integer,
  integers,
  oneOf,
  path,
  seconds,
  string,
  strings,
  tables,
  value,
  valueList,
  vectors,
} from './key-types.js'

export const shardedTableKeys = {
  database: string(undefined, 'Name of the database.', { required: true }),
  name: string(undefined, 'Name of the table; absent: every table that has the column.'),
  schema: string(undefined, 'Its schema; absent: any.'),
  column: string(undefined, 'Column of the sharding key.', { required: true }),
  data_type: oneOf([...keyTypes, 'vector'] as const, 'bigint', 'Type of the column.'),
  hasher: oneOf(
    ['postgres', 'sha1'],
    'postgres',
    "Hash function: that of PARTITION BY HASH, or PgDog's sha1.",
  ),
  primary: boolean(false, 'The table whose keys the others refer to.', {
    unused: 'tables lie together when their keys are placed alike',
  }),
  centroids: vectors(
    'Centres of a vector key: rows go to shard (number of the nearest) mod shards.',
  ),
  centroids_path: path('JSON file with them, a list of lists of numbers.'),
  centroid_probes: integer(0, 'PgDog: centres that a search looks at, which may miss rows.', {
    unused: 'a search looks at every shard, so that its answer is exact',
  }),
  mapping: tables('Values or ranges and their shards, instead of a hash.'),
  lookup_query: string(undefined, 'Query with $1 = key that returns what is placed.'),
  lookup_result: oneOf(
    ['value', 'shard'],
    'value',
    'Whether it returns a key or the number of a shard.',
    { unused: noLookups },
  ),
  buckets: integer(undefined, 'Modulus of the hash; absent: the number of shards, as PgDog.', {
    own: true,
    min: 1,
    max: 65_536,
  }),
  bucket_map: integers('Shard of each bucket; absent: bucket modulo number of shards.', {
    own: true,
  }),
  local_constraints: strings('Unique and foreign keys known to hold on each shard only.', {
    own: true,
  }),
} as const

const mappingKeys_ = {
  values: valueList('Values that lie on the shard.'),
  start: value('Start of a range, inclusive; absent: open.'),
  end: value('End of a range, exclusive; absent: open.'),
}

export const mappingKeys = {
  ...mappingKeys_,
  shard: integer(undefined, 'The shard; alone: where all other values go.', { required: true }),
} as const

export const shardedMappingKeys = {
  database: string(undefined, 'Name of the database.', { required: true }),
  column: string(undefined, 'Column of the sharding key.', { required: true }),
  table: string(undefined, 'Name of the table.'),
  schema: string(undefined, 'Its schema.'),
  kind: oneOf(
    ['list', 'range', 'default'],
    undefined,
    'What the entry is; absent: what its other keys say.',
  ),
  ...mappingKeys_,
  shard: integer(undefined, 'The shard.', { required: true }),
} as const

export const shardedSchemaKeys = {
  database: string(undefined, 'Name of the database.', { required: true }),
  name: string(undefined, 'Name of the schema; absent: all that no other entry names.'),
  shard: integer(0, 'Its shard.'),
  all: boolean(false, 'The schema lies on all shards.'),
} as const

export const omnishardedKeys = {
  database: string(undefined, 'Name of the database.', { required: true }),
  tables: strings('Tables that lie whole on every shard, with or without schema.', {
    required: true,
  }),
  sticky: boolean(false, 'A client reads them always from the same shard.'),
} as const

export const rewriteModes = ['error', 'rewrite', 'ignore'] as const

export const rewriteKeys = {
  enabled: boolean(false, 'PgDog stores it and reads it nowhere.', {
    unused: 'the three modes count by themselves',
  }),
  shard_key: oneOf(
    rewriteModes,
    'rewrite',
    'UPDATE of the sharding key: rows move to their new shard, or an error when one would.',
  ),
  split_inserts: oneOf(
    rewriteModes,
    'rewrite',
    'INSERT of rows of several shards: it is cut by row, or an error.',
  ),
  primary_key: oneOf(
    ['ignore', 'error', 'rewrite', 'rewrite_omni'],
    'ignore',
    'INSERT without the bigint primary key.',
  ),
} as const

export const tcpKeys = {
  keepalive: boolean(true, 'TCP keep-alive on all sockets.', { takesEffect: 'new connections' }),
  time: duration(undefined, 'Idle time before the first probe.', {
    takesEffect: 'new connections',
  }),
  interval: duration(undefined, 'Pause between probes.', {
    unused: "Node.js cannot set it; the system's value counts",
  }),
  retries: integer(undefined, 'Probes without answer before the socket is closed.', {
    unused: "Node.js cannot set it; the system's value counts",
  }),
  user_timeout: duration(undefined, 'TCP_USER_TIMEOUT.', {
    unused: "Node.js cannot set it; the system's value counts",
  }),
  congestion_control: string(undefined, 'Congestion control.', {
    unused: "Node.js cannot set it; the system's value counts",
  }),
} as const

const ownBuffers = 'buffers are sized by what is measured to be fast, within fixed bounds'

export const memoryKeys = {
  net_buffer: bytes(4096, 'Buffer of a socket.', { unused: ownBuffers }),
  message_buffer: bytes(4096, 'Buffer of a message.', { unused: ownBuffers }),
  stack_size: bytes(2_097_152, 'Stack of a thread.', { unused: ownBuffers }),
} as const

export const multiTenantKeys = {
  column: string(
    undefined,
    'SELECT, UPDATE and DELETE on a table with this column need a filter on it.',
    { required: true },
  ),
} as const

export const mirroringKeys = {
  source_db: string(undefined, 'Database whose statements are mirrored.', { required: true }),
  destination_db: string(undefined, 'Database that gets them.', { required: true }),
  queue_length: integer(undefined, 'Statements that may wait; absent: general.mirror_queue.'),
  exposure: fraction(undefined, 'Part of the transactions; absent: general.mirror_exposure.'),
  level: oneOf(['all', 'dml', 'ddl'], 'all', 'Which statements.'),
} as const

export const pluginKeys = {
  name: string(undefined, 'Name of the plugin; without module also that of the package to load.', {
    required: true,
    takesEffect: 'restart',
  }),
  module: path('ES module whose default export comes from definePlugin.', {
    own: true,
    takesEffect: 'restart',
  }),
  config: string(undefined, 'Handed to init(): the path of its own configuration.', {
    takesEffect: 'restart',
  }),
  timeout: duration(
    50,
    'Time for one call of route(); 0: not watched, which saves about 0.1 ms a statement.',
    { own: true, takesEffect: 'restart' },
  ),
} as const

export const queryParserKeys = {
  database: string(undefined, 'Name of the database.', {
    required: true,
    unused: 'its entry has nothing that counts here',
  }),
  level: oneOf(parserLevels, 'auto', 'Instead of general.query_parser.', { unused: alwaysRead }),
  engine: oneOf(parserEngines, undefined, 'Instead of general.query_parser_engine.', {
    unused: "there is one parser here, PostgreSQL's own",
  }),
} as const

const noReader = 'PgDog itself reads it nowhere; see ban_replica_lag'

export const replicaLagKeys = {
  check_interval: duration(1000, 'Pause between checks.', { unused: noReader }),
  max_age: duration(undefined, 'Lag allowed.', { unused: noReader }),
} as const

export const replicationKeys = {
  pg_dump_path: string(
    'pg_dump',
    'pg_dump for the schema of reshard; that inside the package is used when it is missing.',
  ),
} as const

export const otelKeys = {
  endpoint: string(undefined, 'OTLP/HTTP address that metrics are pushed to.', {
    env: 'OTEL_EXPORTER_OTLP_ENDPOINT',
  }),
  headers: headers('Headers sent along.', { env: 'OTEL_EXPORTER_OTLP_HEADERS', secret: true }),
  namespace: string('pgdog', 'Prefix of the names.', { env: 'PGDOG_OTEL_NAMESPACE' }),
  push_interval: duration(10_000, 'Pause between pushes.', {
    env: 'OTEL_METRIC_EXPORT_INTERVAL',
    min: 1,
  }),
  datadog_api_key: string(undefined, 'API key for Datadog.', { env: 'DD_API_KEY', secret: true }),
} as const

export const vaultKeys = {
  url: string(undefined, 'Address of Vault.', { required: true }),
  auth_method: oneOf(['kubernetes', 'approle'], undefined, 'How we log in.'),
  auth_mount: string(undefined, 'Mount of the method.'),
  kubernetes_role: string(undefined, 'Role for kubernetes.'),
  kubernetes_jwt_path: path('Token file for kubernetes.'),
  approle_role_id: string(undefined, 'Role for approle.'),
  approle_secret_id_file: path('File with its secret id.'),
  namespace: string(undefined, 'Namespace.'),
  client_token_ttl: seconds(60, 'How long a checked password is believed.', {
    unused: 'passwords of clients do not come from Vault (vault_path is refused)',
  }),
} as const

export const haKeys = {
  state: string(undefined, 'Connection string of the database that holds ha_config.', {
    own: true,
    secret: true,
  }),
  cluster: string('pgshard', 'Name that PL/Proxy functions give to CLUSTER.', { own: true }),
  user: string('hauser', 'Role of the probers, on the nodes and in the state database.', {
    own: true,
  }),
  password: string(undefined, 'Its password.', { own: true, secret: true }),
  connect_timeout: duration(
    10_000,
    'Time for a connection and for a probe; also the pause between attempts.',
    { own: true, min: 1 },
  ),
  statement_timeout: integer(
    60,
    'What plproxy.get_cluster_config gives for statement_timeout; PL/Proxy 2.10 ignores it.',
    { own: true, min: 0 },
  ),
} as const

export const haGroupKeys = {
  name: string(undefined, 'Name of the group.', { required: true, own: true }),
  database: string(undefined, 'Database of serve that follows it.', { own: true }),
  shard: integer(0, 'Shard of that database that it is.', { own: true }),
  primary: string(undefined, 'Connection string of the preferred primary.', {
    required: true,
    own: true,
    secret: true,
  }),
  standby: string(undefined, 'Connection string of the standby.', {
    required: true,
    own: true,
    secret: true,
  }),
  heartbeat_interval: duration(10_000, 'Pause between heartbeats.', { own: true, min: 1 }),
  switch_after: duration(20_000, 'Age of the heartbeat at which the group switches.', {
    own: true,
    min: 1,
  }),
  fencing_command: string(
    undefined,
    'Shell command run before a route changes; the route stays when it fails.',
    { own: true },
  ),
  promote: boolean(
    false,
    'The standby is a streaming replica: probed by a read, promoted before the route changes.',
    { own: true },
  ),
} as const

export const functionRouteKeys = {
  database: string(undefined, 'Name of the database.', { required: true, own: true }),
  function: string(undefined, 'Name of the function, with or without schema.', {
    required: true,
    own: true,
  }),
  shard: integer(undefined, 'Shard that runs it.', { own: true }),
  group: string(undefined, 'HA group that runs it.', { own: true }),
  hash_argument: integer(
    undefined,
    'Number of the argument, from 1, whose hash chooses the shard.',
    { own: true, min: 1 },
  ),
  hash_type: oneOf(keyTypes, 'bigint', 'Type of that argument.', { own: true }),
} as const
