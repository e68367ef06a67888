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
    hint: 'go on with it: pgshard reshard resume --from {from} --to {to} --yes; or remove what it left: pgshard reshard cleanup --from {from} --to {to} --drop-target',
    exit: 5,
  },
  RESHARD_BUSY: {
    sqlstate: '55006',
    message: 'another process works on this move ({holder})',
    hint: 'wait for it or end it; one process at a time works on a move',
    retry: 'safe',
    exit: 5,
  },
  RESHARD_JOURNAL_LOST: {
    sqlstate: '08006',
    message: 'the connection to the journal of run "{run}" was lost',
    hint: 'what was done is recorded; go on with pgshard reshard resume',
    exit: 6,
  },
  RESHARD_SLOT_GONE: {
    sqlstate: '55000',
    message: 'replication slot "{slot}" on {server} is gone: changes since the copy are lost',
    hint: 'the copy must start over: pgshard reshard cleanup --drop-target, then run again',
    exit: 6,
  },
  RESHARD_READER_BEHIND: {
    sqlstate: '55000',
    message:
      '{server} is too far behind to be read: it has reached {reached}, the slot begins at {wanted}',
    hint: 'let it catch up, or read from the primary, then go on with pgshard reshard resume',
    exit: 6,
  },
  RESHARD_CONFIG_CHANGED: {
    sqlstate: '55000',
    message: 'the configuration of "{name}" is not the one that run "{run}" began with: {what}',
    hint: 'put the old configuration back, or start over: pgshard reshard cleanup --drop-target, then run again',
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
    hint: 'nothing but our journal was written to the target; mend it and go on with pgshard reshard resume',
    exit: 6,
  },
  RESHARD_SCHEMA_APPLY: {
    sqlstate: '55000',
    message: 'could not make the schema on {server}: {reason}',
    hint: 'what was made stays; mend it and go on with pgshard reshard resume',
    exit: 6,
  },
  RESHARD_COPY: {
    sqlstate: '55000',
    message: 'copying table "{table}" from {server} failed: {reason}',
    hint: 'what was copied stays; go on with pgshard reshard resume',
    exit: 6,
  },
  RESHARD_APPLY: {
    sqlstate: '55000',
    message: 'applying a change of table "{table}" to {server} failed: {reason}',
    hint: 'the source is unharmed and still serves; mend it and go on with pgshard reshard resume',
    exit: 6,
  },
  RESHARD_DDL: {
    sqlstate: '55000',
    message: 'table "{table}" was changed on {server} while it is being moved: {what}',
    hint: 'the run is paused, the source unharmed: take the change back and say pgshard reshard resume, or start over with pgshard reshard cleanup --drop-target and pgshard reshard run',
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
  RESHARD_WAL_GUARD: {
    sqlstate: '53100',
    message: 'the run was given up before a source fills its disk: {reason}',
    hint: 'the source serves as before, {rest}; see why the targets did not keep up, then pgshard reshard cleanup --drop-target and run again, with more room in --max-wal-kept or with --wal-action pause',
    exit: 6,
  },
  RESHARD_REPORT_FILE: {
    sqlstate: '58030',
    message: 'could not write the report to "{path}": {reason}',
    hint: 'name a file in a directory that may be written: pgshard reshard status --html FILE writes it again',
    exit: 2,
  },
  RESHARD_SETTING: {
    sqlstate: '22023',
    message: 'setting "{name}" cannot be "{value}"',
    hint: 'give {wanted}',
    exit: 2,
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
  RESHARD_PROXY_UNREACHED: {
    sqlstate: '08001',
    message: '{count} running proxies of "{database}" were not reached: {proxies}',
    hint: 'name the console of each with --proxy postgres://admin@HOST:PORT/admin; one that has ended is forgotten after {seconds} s',
    exit: 4,
  },
  RESHARD_PROXY_SILENT: {
    sqlstate: '08001',
    message:
      '{count} proxies of "{database}" were not reached, and might wake with the old map: {proxies}',
    hint: 'name the console of each with --proxy postgres://admin@HOST:PORT/admin; of one that has ended for certain: DELETE FROM pgshard.proxy WHERE id = … on the first shard',
    exit: 4,
  },
  RESHARD_BUCKET_REPLICAS: {
    sqlstate: '55000',
    message:
      'shards of "{name}" have several hosts: on a standby rows that have moved would still be seen for a moment',
    hint: 'take the standbys out of the configuration until the move is done',
    exit: 5,
  },
  RESHARD_SHARED_BY: {
    sqlstate: '55000',
    message:
      'database "{name}" has shards of "{from}" and "{to}" too, and would read by a map that is over',
    hint: 'take it out of the configuration of every proxy first',
    exit: 5,
  },
  RESHARD_VERIFY_SHARED: {
    sqlstate: '55000',
    message:
      'all shards of "{to}" are such of "{from}" too: there are no rows to compare beside a run',
    hint: 'reshard run compares what comes to them before it switches; on two databases that share no shard, reshard verify compares all',
    exit: 5,
  },
  RESHARD_STRAY_ROWS: {
    sqlstate: '23505',
    message: '"{table}" has rows on {server} already that are of buckets which would come to it',
    hint: 'they stand on a wrong shard, where no statement by key finds them: move or delete them there, then reshard resume',
    exit: 7,
  },
  RESHARD_UNSETTLED: {
    sqlstate: '55000',
    message: '"{database}" was left by an earlier move, and its new shards do not serve yet',
    hint: 'end that move with reshard resume, or name the database by all its shards',
    exit: 5,
  },
  RESHARD_PINNED: {
    sqlstate: '55006',
    message: '{count} clients keep their servers, so that a cutover would wait for them: {clients}',
    hint: 'let them finish, or have the cutover end them with --end-pinned',
    exit: 5,
  },
  RESHARD_TARGET_ACTIVE: {
    sqlstate: '55000',
    message: '"{to}" is being served: it has been taken over to in epoch {epoch}',
    hint: 'move to a database that nobody is served from',
    exit: 5,
  },
  RESHARD_BLOCKED: {
    sqlstate: '55006',
    message: 'the tables of {server} are held: {holders}',
    hint: 'wait until these have ended, or end them: vacuum, index builds and prepared transactions keep a cutover from its lock',
    exit: 5,
  },
  RESHARD_NO_WAY_BACK: {
    sqlstate: '55000',
    message: 'the stream back from "{to}" to "{from}" cannot be armed: {reason}',
    hint: 'mend it, or give up the way back with --no-reverse',
    exit: 5,
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
  RESHARD_UNDECIDED: {
    sqlstate: '08007',
    message: 'the new side cannot be asked whether it has taken over: {reason}',
    hint: 'both sides are closed to writers until it can; then go on with: pgshard reshard resume',
    exit: 6,
  },
  RESHARD_SWITCHED_HALF: {
    sqlstate: '55000',
    message: 'the new side has taken over, but {step} failed: {reason}',
    hint: 'it is the truth now and has every write; do what is left with: pgshard reshard resume',
    exit: 6,
  },
  RESHARD_CONFIG_FILE: {
    sqlstate: 'F0000',
    message: 'could not switch the databases in "{path}": {reason}',
    hint: 'the file is unchanged; it needs [[databases]] entries for both names',
    exit: 3,
  },
} as const satisfies Record<string, CatalogueEntry>
