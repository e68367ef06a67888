/** Keys of [general] on parsing, sharding, two-phase commit and resharding. Descriptions only. */
import { boolean, bytes, duration, integer, oneOf, path } from './key-types.js'

const ownIds = 'pgshard.unique_id() is a function of each shard, made by setup'
/** Of two_phase_commit_auto, also a user's own. */
export const sameForSingle =
  'single statements over several shards are committed as cross_shard_writes says'
const decisions = 'the decision of a two-phase commit is a row in the database, not a file'

export const parserLevels = [
  'on',
  'auto',
  'off',
  'session_control',
  'session_control_and_locks',
] as const
export const parserEngines = ['pg_query_protobuf', 'pg_query_raw'] as const
export const alwaysRead = 'every statement is read, once a template'
export const noLookups = 'lookup_query is refused'
const oneParser = "there is one parser here, PostgreSQL's own"

export const parserKeys = {
  query_parser: oneOf(
    parserLevels,
    'auto',
    'When statements are parsed; off is refused for a database of several shards.',
    { env: null, unused: alwaysRead },
  ),
  query_parser_enabled: boolean(false, 'Deprecated: query_parser = "on".', {
    unused: alwaysRead,
  }),
  query_parser_engine: oneOf(parserEngines, 'pg_query_protobuf', 'Which build of the parser.', {
    env: null,
    unused: oneParser,
  }),
  regex_parser_limit: integer(1000, 'Bytes that the reader of session commands looks at.', {
    env: null,
    unused: 'session commands are found by the lexer in the whole statement',
  }),
  dry_run: boolean(false, 'Statements are routed for the statistics, and run as if they were not.'),
  expanded_explain: boolean(false, 'EXPLAIN shows the route too.'),
} as const

export const shardingKeys = {
  cross_shard_disabled: boolean(false, 'Statements for more than one shard are refused.'),
  cross_shard_writes: oneOf(
    ['two_phase', 'best_effort', 'error'],
    undefined,
    'How a transaction that wrote on several shards commits. None: two_phase where every shard allows prepared transactions, else error.',
    { own: true },
  ),
  cross_shard_gather: oneOf(
    ['on', 'off'],
    'on',
    'Statements that need rows of all shards in one place are finished on one server.',
    { own: true },
  ),
  gather_max_bytes: bytes(1_073_741_824, 'Most bytes of such rows; beyond it 54000.', {
    own: true,
    min: 1,
  }),
  gather_max_rows: integer(10_000_000, 'Most such rows.', { own: true, min: 1 }),
  cross_shard_serializable: oneOf(
    ['error', 'per_shard'],
    'error',
    'SERIALIZABLE over several shards: refused, or serializable on each shard only.',
    { own: true },
  ),
  cross_shard_deadlock_ms: duration(
    1_000,
    'A statement over shards that waits longer is looked at for a deadlock.',
    { own: true, min: 1 },
  ),
  two_phase_wait_ms: duration(
    5_000,
    'How long COMMIT waits for a shard that does not answer in the second phase.',
    { own: true },
  ),
  omnisharded_sticky: boolean(
    false,
    'A client reads reference tables always from the same shard.',
    { env: null },
  ),
  system_catalogs: oneOf(
    ['omnisharded', 'omnisharded_sticky', 'sharded'],
    'omnisharded_sticky',
    'How pg_catalog is read in a sharded database.',
    { unused: 'catalogs are those of shard 0' },
  ),
  canonicalize_type_information: boolean(false, 'Type OIDs of user types are those of shard 0.', {
    unused: 'they always are',
  }),
  load_schema: oneOf(
    ['on', 'off', 'auto'],
    'auto',
    'Tables and columns are read at start; auto: when sharded.',
  ),
  reload_schema_on_ddl: boolean(true, 'They are read again after DDL.', {
    env: 'PGDOG_SCHEMA_RELOAD_ON_DDL',
  }),
  sharding_lookup_cache_size: bytes(67_108_864, 'Memory for results of lookup_query.', {
    env: null,
    unused: noLookups,
  }),
  sharding_lookup_timeout: duration(5_000, 'Time for a lookup_query.', {
    env: null,
    unused: noLookups,
  }),
  unique_id_min: integer(0, 'Added to every unique_id().', { env: null, unused: ownIds }),
  unique_id_function: oneOf(
    ['standard', 'compact'],
    'standard',
    'Width of unique_id(): 63 bits, or 53 for JavaScript.',
    { unused: ownIds },
  ),
} as const

export const twoPhaseKeys = {
  two_phase_commit: boolean(
    undefined,
    'PgDog\'s switch: false, when written, means cross_shard_writes = "error"; true means "two_phase".',
    { env: null },
  ),
  two_phase_commit_auto: boolean(undefined, 'The same for single statements.', {
    env: null,
    unused: sameForSingle,
  }),
  two_phase_commit_wal_dir: path("Directory of PgDog's log.", { unused: decisions }),
  two_phase_commit_wal_segment_size: bytes(16_777_216, 'Size of its segments.', {
    unused: decisions,
  }),
  two_phase_commit_wal_fsync_interval: duration(0, 'Pause between its fsyncs.', {
    unused: decisions,
  }),
  two_phase_commit_wal_checkpoint_interval: duration(15_000, 'Pause between its checkpoints.', {
    unused: decisions,
  }),
} as const

const resumed = 'a move that fails ends, and pgshard reshard resume goes on with what is missing'
const allApplied =
  'traffic is paused when all was applied, and the switch made when every change is'

export const reshardKeys = {
  resharding_copy_format: oneOf(
    ['binary', 'text'],
    'binary',
    'Format of the copy; text allows integer to become bigint.',
    { unused: 'binary where types and versions are the same, text else' },
  ),
  resharding_parallel_copies: integer(1, 'Tables copied at one time from one source host.', {
    env: null,
    min: 1,
    unused: 'pgshard reshard --jobs says it',
  }),
  resharding_copy_retry_max_attempts: integer(5, 'Attempts at one part.', {
    env: null,
    unused: resumed,
  }),
  resharding_copy_retry_min_delay: duration(1_000, 'Pause before the second attempt; doubles.', {
    env: null,
    unused: resumed,
  }),
  resharding_replication_retry_max_attempts: integer(
    5,
    'Attempts to go on with a broken stream; 0: for ever.',
    { unused: resumed },
  ),
  resharding_replication_retry_min_delay: duration(1_000, 'Pause between them.', {
    unused: resumed,
  }),
  cutover_traffic_stop_threshold: bytes(1_000_000, 'Lag at which traffic is paused.', {
    unused: allApplied,
  }),
  cutover_replication_lag_threshold: bytes(0, 'Lag at which the switch is made.', {
    unused: allApplied,
  }),
  cutover_last_transaction_delay: duration(
    1_000,
    'PgDog: or no replicated transaction for this long.',
    { unused: 'a cutover waits until every change has been applied' },
  ),
  cutover_timeout: duration(30_000, 'Time for the cutover.', {
    unused: 'pgshard reshard --budget-ms says how long writes may be paused',
  }),
  cutover_timeout_action: oneOf(['abort', 'cutover'], 'abort', 'What happens then.'),
  cutover_save_config: boolean(
    false,
    'The switched configuration is written to the file, the old one kept as *.bak.toml.',
    { env: null, unused: 'it always is' },
  ),
} as const
