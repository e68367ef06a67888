import type { CatalogueEntry } from '../catalogue-entry.js'

/** A client's conversation, and the servers that it talks to. */
export const sessionErrors = {
  SERVER_SAID_NO: { sqlstate: 'XX000', message: '{message}', retry: 'unknown' },
  SERVER_LOST: {
    sqlstate: '08006',
    message: 'connection to server {server} was lost',
    hint: 'the statement may or may not have run; check before you repeat it',
  },
  SERVER_ENDED: {
    sqlstate: '57P01',
    message: 'server {server} ended the connection: {reason}',
    retry: 'safe',
  },
  SERVER_CLOSED_BY_US: {
    sqlstate: '08003',
    message: 'connection to server {server} was closed',
    retry: 'safe',
  },
  SERVER_OUT_OF_STEP: {
    sqlstate: '08P01',
    message: 'server {server} broke the protocol: {reason}',
  },
  SERVER_START_TIMEOUT: {
    sqlstate: '08001',
    message: 'server {server} did not finish the login within {limit} ms',
    hint: 'check that a PostgreSQL server answers there, or raise connect_timeout',
    retry: 'safe',
    exit: 4,
  },
  SERVER_NO_TLS: {
    sqlstate: '08001',
    message: 'server {server} does not support TLS, but TLS is required',
    hint: 'turn on ssl on the server, or set tls_verify = "prefer" or "disabled"',
    retry: 'safe',
    exit: 4,
  },
  SERVER_TLS_STUFFED: {
    sqlstate: '08P01',
    message: 'server {server} sent unencrypted data behind its answer to SSLRequest',
    hint: 'someone may be tampering with the connection',
    exit: 4,
  },
  SERVER_NO_PASSWORD: {
    sqlstate: '28P01',
    message: 'server {server} asks for the password of "{user}", and none is configured',
    hint: 'add server_password (or password) for the user, or a line in ~/.pgpass',
    retry: 'safe',
    exit: 4,
  },
  SERVER_AUTH_UNKNOWN: {
    sqlstate: '28000',
    message: 'server {server} asks for an authentication that pgshard does not know: {method}',
    hint: 'use scram-sha-256, md5, password or trust in pg_hba.conf',
    retry: 'safe',
    exit: 4,
  },
  SESSION_NO_STATEMENT: {
    sqlstate: '26000',
    message: 'prepared statement "{name}" does not exist',
  },
  SESSION_NO_UNNAMED: { sqlstate: '26000', message: 'unnamed prepared statement does not exist' },
  SESSION_STATEMENT_EXISTS: {
    sqlstate: '42P05',
    message: 'prepared statement "{name}" already exists',
  },
  SESSION_NO_PORTAL: { sqlstate: '34000', message: 'portal "{name}" does not exist' },
  SESSION_PARAMETER_COUNT: {
    sqlstate: '08P01',
    message:
      'bind message supplies {given} parameters, but prepared statement "{statement}" requires {required}',
  },
  SESSION_BEGIN_MODES: {
    sqlstate: '0A000',
    message: 'BEGIN with modes inside a transaction over several shards is not supported',
    hint: 'use SET TRANSACTION, or send the modes with the first BEGIN',
  },
  SESSION_CURSOR_EXISTS: { sqlstate: '42P03', message: 'cursor "{name}" already exists' },
  SESSION_NO_SAVEPOINT: { sqlstate: '3B001', message: 'savepoint "{name}" does not exist' },
  SESSION_ABORTED: {
    sqlstate: '25P02',
    message: 'current transaction is aborted, commands ignored until end of transaction block',
  },
  SESSION_SEVERAL_SHARDS_IN_REQUEST: {
    sqlstate: '0A000',
    message: 'one request holds statements for several shards',
    hint: 'send each statement as a request of its own (a Query, or messages up to a Sync), or pin them to one shard with a hint',
  },
  SESSION_SNAPSHOT_SHARDS: {
    sqlstate: '0A000',
    message: 'a SERIALIZABLE transaction stays on the shard of its first statement',
    hint: 'use REPEATABLE READ, keep its statements on one sharding key, or set cross_shard_serializable = "per_shard"',
  },
  SESSION_WRITES_SHARDS: {
    sqlstate: '0A000',
    message: 'the transaction would write shard {second} after it wrote shard {first}',
    hint: 'set max_prepared_transactions on every shard, run "pgshard setup", and leave cross_shard_writes at two_phase; or keep writes of a transaction on one shard',
  },
  SESSION_DEADLOCK_SHARDS: {
    sqlstate: '40P01',
    message: 'deadlock detected over shards',
    hint: 'run the transaction again; transactions that lock rows in one order do not meet so',
    retry: 'safe',
  },
  SESSION_COMMIT_IN_PART: {
    sqlstate: '40003',
    message: 'shard {done} committed, but shard {failed} did not: {reason}',
    hint: 'this is what cross_shard_writes = best_effort allows; two_phase commits all or none',
    retry: 'unsafe',
  },
  SESSION_ONLY_IN_BLOCK: {
    sqlstate: '25P01',
    message: '{what} can only be used in transaction blocks',
  },
  SESSION_TWO_PHASE_BY_CLIENT: {
    sqlstate: '0A000',
    message: 'PREPARE TRANSACTION and its kin are not available on several shards',
    hint: 'COMMIT is made atomic over shards by pgshard itself',
  },
  SESSION_SEVERAL_COMMANDS: {
    sqlstate: '42601',
    message: 'cannot insert multiple commands into a prepared statement',
  },
  SESSION_PORTAL_SHARDS: {
    sqlstate: '0A000',
    message: 'a portal over several shards cannot be read in portions',
    hint: 'fetch all rows at once (fetch size 0), or pin the statement to one shard',
  },
  WRITE_RETURNING_SIZE: {
    sqlstate: '54000',
    message: 'RETURNING of a write on several shards gives more than {limit} bytes',
    hint: 'write without RETURNING and read the rows afterwards, or write fewer rows at once',
  },
  WRITE_COUNTS_DIFFER: {
    sqlstate: 'XX000',
    message:
      'shard {shard} changed {count} rows of a reference table, and shard {first} {expected}',
    hint: 'nothing has changed; the copies of the table differ: compare them on the shards and mend the one that is wrong',
  },
  WRITE_MOVED_ROWS_CHANGED: {
    sqlstate: '40001',
    message: 'could not move rows of table "{table}" to other shards: {reason}',
    hint: 'run the transaction again',
  },
  WRITE_MOVED_ROWS: {
    sqlstate: '0A000',
    message: 'moving rows of table "{table}" to other shards is not supported: {reason}',
    hint: 'delete the rows and insert them with the new key',
  },
  WRITE_SPLIT_OFF: {
    sqlstate: '0A000',
    message: 'the rows belong to several shards, which rewrite.split_inserts = "error" forbids',
    hint: 'insert the rows of each shard by themselves, or set split_inserts = "rewrite"',
  },
  WRITE_MOVES_OFF: {
    sqlstate: '0A000',
    message:
      'the new sharding key would move rows of table "{table}" to other shards, which rewrite.shard_key = "error" forbids',
    hint: 'delete the rows and insert them with the new key, or set shard_key = "rewrite"',
  },
  WRITE_SELECTED_TYPE: {
    sqlstate: '0A000',
    message: 'INSERT … SELECT into table "{table}" over several shards is not supported: {reason}',
    hint: 'cast the values to the types of the columns',
  },
  WRITE_SELECTED_SIZE: {
    sqlstate: '54000',
    message: 'INSERT … SELECT over several shards reads more than {limit} bytes',
    hint: 'insert in portions, or use COPY',
  },
  WRITE_PARTLY_DONE: {
    sqlstate: '55000',
    message: '{verb} failed on shard {shard} and cannot be undone on the others: {reason}',
    hint: 'mend the cause and run it again on the shards that lack it, each with /* pgshard_shard: N */ before it',
  },
  SESSION_FUNCTION_CALL: {
    sqlstate: '0A000',
    message: 'the function call protocol is not available on several shards',
    hint: 'call the function in a SELECT',
  },
  SESSION_COPY_SHARDS: {
    sqlstate: '0A000',
    message:
      'COPY into "{table}" would write several shards, which cross_shard_writes = error forbids',
    hint: 'set max_prepared_transactions on every shard and run "pgshard setup" to get two_phase, or load with "pgshard copy-shard"',
  },
  SESSION_COPY_FAILED: { sqlstate: '57014', message: '{reason}' },
  SESSION_COPY_UNKNOWN: { sqlstate: '42P01', message: 'relation "{table}" does not exist' },
  SESSION_STATEMENT_MODE: {
    sqlstate: '0A000',
    message:
      'transactions and requests of several statements are not available in statement pooling mode',
    hint: 'set pooler_mode = "transaction" for this user or database',
  },
  SESSION_NEWER_SYNTAX: {
    sqlstate: '0A000',
    message: 'the server reads a statement that pgshard cannot read, so it cannot be routed',
    hint: 'add a shard hint such as /* pgshard_shard: 0 */',
  },
  SESSION_STATEMENT_SIZE: {
    sqlstate: '54000',
    severity: 'FATAL',
    message: 'a statement of {bytes} bytes is longer than query_size_limit, {limit}',
    hint: 'send values as parameters, or raise query_size_limit',
  },
  SESSION_CANCELLED: { sqlstate: '57014', message: 'canceling statement due to user request' },
  SESSION_QUERY_TIMEOUT: {
    sqlstate: '57014',
    message: 'canceling statement due to query_timeout of {limit} ms',
  },
  SESSION_SHUTDOWN: {
    sqlstate: '57P01',
    severity: 'FATAL',
    message: 'terminating connection because pgshard is shutting down',
    hint: 'connect again',
    retry: 'safe',
  },
  SESSION_IDLE: {
    sqlstate: '57P05',
    severity: 'FATAL',
    message: 'terminating connection due to idle timeout',
  },
  SESSION_IDLE_IN_TRANSACTION: {
    sqlstate: '25P03',
    severity: 'FATAL',
    message: 'terminating connection due to idle-in-transaction timeout',
  },
  SESSION_ENCODING: {
    sqlstate: '0A000',
    message:
      'a statement with characters outside ASCII cannot be routed under client_encoding {encoding}',
    hint: 'SET client_encoding TO UTF8',
  },
  SESSION_SQL_EXECUTE: {
    sqlstate: '0A000',
    message: 'EXECUTE of a statement that reads several shards is not supported',
    hint: 'execute it by the protocol, as drivers do',
  },
  SESSION_STRINGS: {
    sqlstate: '0A000',
    message:
      'a statement with a backslash cannot be routed while standard_conforming_strings is off',
    hint: 'SET standard_conforming_strings TO on, or send the value as a parameter',
  },
  SESSION_PARAMETER_TYPE: {
    sqlstate: '42P18',
    message: 'could not determine data type of parameter {parameter}',
    hint: 'the statement does not name it: leave it out, or give its type',
  },
  SESSION_SHARDS_DIFFER: {
    sqlstate: '0A000',
    message:
      'a statement over several shards is not supported while their {name} differs: "{home}" on shard 0, "{value}" on shard {shard}',
    hint: 'databases of the shards must be made with the same encoding and collation: move the rows to one that is',
  },
  SESSION_SHARDS_DISAGREE: {
    sqlstate: 'XX000',
    message: 'shard {shard} answers with other columns than shard {first}',
    hint: 'the schemas of the shards differ; compare them and repair the one that is behind',
  },
  SESSION_HINT_INVALID: {
    sqlstate: '22023',
    message: 'invalid value for parameter "{name}": "{value}"',
  },
  LOGIN_REFUSED: {
    sqlstate: '28000',
    severity: 'FATAL',
    message: 'no entry lets user "{user}" into database "{database}"',
    hint: 'add the user to users.toml',
  },
  LOGIN_LEFT: { sqlstate: '08006', message: 'the client left before its login was finished' },
  LOGIN_TLS_STUFFED: {
    sqlstate: '08P01',
    severity: 'FATAL',
    message: 'received unencrypted data after SSL request',
    hint: 'this could be either a client-software bug or evidence of an attempted man-in-the-middle attack',
  },
  LOGIN_OPTION: {
    sqlstate: '42601',
    severity: 'FATAL',
    message: 'invalid command-line argument for server process: {option}',
    hint: 'options takes -c name=value and --name=value',
  },
  LOGIN_REPLICATION: {
    sqlstate: '0A000',
    severity: 'FATAL',
    message: 'replication connections do not go through pgshard',
    hint: 'connect to the PostgreSQL server itself',
  },
  LOGIN_TIMEOUT: {
    sqlstate: '57P05',
    severity: 'FATAL',
    message: 'the login was not finished within {limit} ms',
  },
  LOGIN_TLS_REQUIRED: {
    sqlstate: '08004',
    severity: 'FATAL',
    message: 'only encrypted connections are accepted',
    hint: 'connect with sslmode=require',
  },
  LOGIN_NO_USER: {
    sqlstate: '28000',
    severity: 'FATAL',
    message: 'no PostgreSQL user name specified in startup packet',
  },
  LOGIN_PROTOCOL: {
    sqlstate: '0A000',
    severity: 'FATAL',
    message: 'unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.{newest}',
  },
} as const satisfies Record<string, CatalogueEntry>
