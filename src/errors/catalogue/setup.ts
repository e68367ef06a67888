import type { CatalogueEntry } from '../catalogue-entry.js'

/** Schema pgshard on each shard. */
export const setupErrors = {
  SETUP_DATABASE_UNKNOWN: {
    sqlstate: '3D000',
    message: 'database "{name}" is not in the configuration',
    hint: 'name one with --database; the configuration has: {known}',
    exit: 3,
  },
  SETUP_NO_ACCOUNT: {
    sqlstate: '28000',
    message: 'no user is configured for database "{database}"',
    hint: 'add a user with schema_admin = true to users.toml, or give --username',
    exit: 3,
  },
  SETUP_NO_PRIMARY: {
    sqlstate: '55000',
    message: 'shard {shard} of database "{database}" has no primary',
    hint: 'give it a [[databases]] entry with role = "primary" or "auto"',
    exit: 3,
  },
  SETUP_SAME_DATABASE: {
    sqlstate: '55000',
    message: 'shards {a} and {b} of "{database}" are the same database on the same server',
    hint: 'give each shard a database of its own',
    exit: 5,
  },
  SETUP_SHARD_CONFLICT: {
    sqlstate: '55000',
    message: 'the shards of "{database}" do not belong together: {reason}',
    hint: 'a shard restored from a copy of another keeps its id: remove schema pgshard there, then run setup again',
    exit: 5,
  },
  SETUP_NEWER: {
    sqlstate: '55000',
    message: 'schema pgshard on {shard} has version {found}, this program knows version {known}',
    hint: 'use the newer pgshard that made it',
    exit: 5,
  },
  SETUP_GUARD_VIOLATED: {
    sqlstate: '23514',
    message: 'table {table} on {shard} has rows that belong on another shard',
    hint: 'move these rows first; the guards that were made stay, those of this shard were not changed',
    exit: 6,
  },
  SETUP_DROP_UNNAMED: {
    sqlstate: '22023',
    message: '--drop asks for the name of the database',
    hint: 'add --database {name}',
    exit: 2,
  },
  SETUP_DROP_REFUSED: {
    sqlstate: '55006',
    message: 'schema pgshard on {shard} is in use: {reason}',
    hint: 'end or recover what uses it, then run it again',
    exit: 5,
  },
} as const satisfies Record<string, CatalogueEntry>
