import type { CatalogueEntry } from '../catalogue-entry.js'

/** pgdog.toml, users.toml, connection URLs and PGDOG_* variables. */
export const configErrors = {
  CONFIG_INVALID: {
    sqlstate: 'F0000',
    message: 'the configuration has {count}',
    hint: 'correct the lines named; every key is in docs/config.md',
    exit: 3,
  },
  CONFIG_NO_DATABASE: {
    sqlstate: 'F0000',
    message: 'no database is configured',
    hint: 'give --config FILE with [[databases]], or -d postgres://user:password@host/database',
    exit: 3,
  },
  CONFIG_UNKNOWN_DATABASE: {
    sqlstate: '3D000',
    message: 'database "{database}" is not in the configuration',
    hint: 'the configuration has: {known}',
    exit: 3,
  },
  CONFIG_NOT_HASHED: {
    sqlstate: '55000',
    message: 'no table of database "{database}" is placed by hash',
    hint: 'buckets belong to tables without a mapping; lists and ranges are edited by hand',
    exit: 5,
  },
  CONFIG_BUCKET_SHARDS: {
    sqlstate: '22023',
    message: 'database "{database}" has {wanted} shards already',
    hint: 'give --to with another number',
    exit: 2,
  },
} as const satisfies Record<string, CatalogueEntry>
