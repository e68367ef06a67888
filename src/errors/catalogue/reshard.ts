import type { CatalogueEntry } from '../catalogue-entry.js'

/** Moving live data from N to M shards. */
export const reshardErrors = {
  RESHARD_REFUSED: {
    sqlstate: '55000',
    message: 'cannot move "{from}" to "{to}": {problems} found, nothing was changed',
    hint: 'mend what the list names, then run it again',
    retry: 'safe',
    exit: 5,
  },
  RESHARD_UNKNOWN_DATABASE: {
    sqlstate: '3D000',
    message: 'database "{name}" is not in the configuration',
    hint: 'the configuration has: {known}',
    exit: 3,
  },
  RESHARD_NO_USER: {
    sqlstate: '28000',
    message: 'no user is configured for database "{name}"',
    hint: 'add a user with schema_admin = true to users.toml, or user and password to its [[databases]] entries',
    exit: 3,
  },
  RESHARD_NOT_CONFIRMED: {
    sqlstate: '22023',
    message: 'reshard run changes databases and the running proxy: it asks for --yes',
    hint: 'see what it would do with: pgshard reshard plan --from {from} --to {to}; then add --yes',
    exit: 2,
  },
  RESHARD_RUN_OPEN: {
    sqlstate: '55006',
    message: 'an earlier run "{run}" is in state {state}',
    hint: 'remove what it left with: pgshard reshard cleanup --from {from} --to {to}',
    exit: 5,
  },
  RESHARD_NO_RUN: {
    sqlstate: '55000',
    message: 'no run is recorded in schema pgshard of "{to}"',
    hint: 'start one with: pgshard reshard run --from {from} --to {to}',
    exit: 5,
  },
  RESHARD_SCHEMA_DUMP: {
    sqlstate: '58030',
    message: 'could not read the schema of {server}: {reason}',
    hint: 'nothing but our journal was written to the target; mend it and run again',
    exit: 6,
  },
  RESHARD_SCHEMA_APPLY: {
    sqlstate: '55000',
    message: 'could not make the schema on {server}: {reason}',
    hint: 'remove what was made with: pgshard reshard cleanup --drop-target, then run again',
    exit: 6,
  },
  RESHARD_COPY: {
    sqlstate: '55000',
    message: 'copying table "{table}" from {server} failed: {reason}',
    hint: 'remove what was copied with: pgshard reshard cleanup --drop-target, then run again',
    exit: 6,
  },
  RESHARD_APPLY: {
    sqlstate: '55000',
    message: 'applying a change of table "{table}" to {server} failed: {reason}',
    hint: 'the source is unharmed and still serves; remove the run with: pgshard reshard cleanup --drop-target',
    exit: 6,
  },
  RESHARD_DDL: {
    sqlstate: '55000',
    message: 'table "{table}" was changed on {server} while it is being moved: {what}',
    hint: 'do not change tables during a move; remove the run with: pgshard reshard cleanup --drop-target, then run again',
    exit: 6,
  },
  RESHARD_KEY_MISSING: {
    sqlstate: '55000',
    message: 'a change of table "{table}" does not carry its sharding key "{column}"',
    hint: 'the replica identity must hold the sharding key; see pgshard reshard plan',
    exit: 6,
  },
  RESHARD_VERIFY_WAITS: {
    sqlstate: '55006',
    message: 'no snapshot of {server} within {waitedMs} ms, {attempts} times',
    hint: 'end the long transaction on the source (oldest: {oldest}) and run again, or give more time with --verify-hold-ms',
    exit: 6,
  },
  RESHARD_VERIFY_ENCODING: {
    sqlstate: '22021',
    message: 'the sides are in encodings {from} and {to}: their rows cannot be compared',
    hint: 'compare databases of one encoding; a move needs one too',
    exit: 5,
  },
  RESHARD_DIFFERENT: {
    sqlstate: '55000',
    message: '"{from}" and "{to}" differ in {tables} table(s)',
    hint: 'nothing was switched; the list names keys to look at',
    exit: 7,
  },
  RESHARD_PROXY: {
    sqlstate: '08001',
    message: 'could not reach the console of the running proxy at {where}: {reason}',
    hint: 'start pgshard serve with a password under [admin] in users.toml, name its console with --proxy, or pass --no-proxy when no proxy serves this configuration',
    exit: 4,
  },
  RESHARD_PAUSE: {
    sqlstate: '55P03',
    message: 'the proxy could not be paused within {budgetMs} ms',
    hint: 'traffic goes on at the old side; end long transactions or give more time with --budget-ms, then run the cutover again',
    exit: 6,
  },
  RESHARD_LOCK: {
    sqlstate: '55P03',
    message: 'could not lock the tables of {server} within {budgetMs} ms',
    hint: 'traffic goes on at the old side; these sessions hold them: {holders}. End them or give more time with --budget-ms, then run again',
    exit: 6,
  },
  RESHARD_CATCH_UP: {
    sqlstate: '55P03',
    message: 'the targets had not caught up within {budgetMs} ms',
    hint: 'traffic goes on at the old side; give more time with --budget-ms or run again when there is less to write',
    exit: 6,
  },
  RESHARD_CUTOVER: {
    sqlstate: '55000',
    message: 'cutover failed while {step}: {reason}',
    hint: 'traffic goes on at the old side, nothing was switched; mend it and run again after pgshard reshard cleanup --drop-target',
    exit: 6,
  },
  RESHARD_SWITCHED_HALF: {
    sqlstate: '55000',
    message: 'the configuration is switched, but {step} failed: {reason}',
    hint: 'the new side is the truth now and has every write; do by hand: {todo}',
    exit: 6,
  },
  RESHARD_CONFIG_FILE: {
    sqlstate: 'F0000',
    message: 'could not switch the databases in "{path}": {reason}',
    hint: 'the file is unchanged; it needs [[databases]] entries for both names',
    exit: 3,
  },
} as const satisfies Record<string, CatalogueEntry>
