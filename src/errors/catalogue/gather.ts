import type { CatalogueEntry } from '../catalogue-entry.js'

/** Rows of several shards copied to one server, where a statement finishes. */
export const gatherErrors = {
  GATHER_TOO_MANY_ROWS: {
    sqlstate: '54000',
    message: 'the statement needs more than {limit} rows of several shards in one place',
    hint: 'narrow the statement, pin it to one sharding key, or raise gather_max_rows',
    exit: 5,
  },
  GATHER_TOO_MANY_BYTES: {
    sqlstate: '54000',
    message: 'the statement needs more than {limit} bytes of rows of several shards in one place',
    hint: 'narrow the statement, pin it to one sharding key, or raise gather_max_bytes',
    exit: 5,
  },
  GATHER_TEMPORARY: {
    sqlstate: '42501',
    message: 'permission denied to create the temporary tables in which the statement would finish',
    hint: 'GRANT TEMPORARY ON DATABASE … TO the role, on every shard, or pin the statement to one sharding key',
    exit: 5,
  },
  GATHER_CLOCK: {
    sqlstate: '0A000',
    message:
      'now() or its kin is written in an unusual form in a statement that is finished over rows of several shards in a transaction',
    hint: 'write now() or CURRENT_TIMESTAMP without quotes, or give the time as a value',
    exit: 5,
  },
  GATHER_LOCKED: {
    sqlstate: '0A000',
    message:
      'a read that is finished over rows of several shards is not supported behind TRUNCATE, LOCK, DROP INDEX or REINDEX in the same transaction',
    hint: 'COMMIT what locks the table first, or read before it',
    exit: 5,
  },
} as const satisfies Record<string, CatalogueEntry>
