/**
 * The source's schema on every target: all but keys before the copy, keys and indexes after it, foreign keys and
 * triggers when nothing that we apply can trip over them.
 */
import { toEngineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import { ensureTargetTables } from '../journal/journal.js'
import { onEachShard, placeOf, type ReshardSide } from '../side.js'
import { applyOnce, type EntryWork, makeEntries } from './apply-entries.js'
import type { SchemaDump, SchemaEntry } from './dump-schema.js'
import { entriesOf } from './entry-stage.js'

/** Name of the CHECK constraints of `pgshard setup --guards`. */
const SETUP_GUARD = 'pgshard_guard'

/**
 * A foreign key that is not checked against the rows that are there: copies of several sources are not of one
 * moment. `validateForeignKeys` checks it when they are.
 */
export function asNotValid(entry: SchemaEntry): string {
  if (entry.type !== 'FK CONSTRAINT' || / NOT VALID;\s*$/.test(entry.sql)) return entry.sql
  return entry.sql.replace(/;\s*$/, ' NOT VALID;')
}

/** Schemas, types, functions, sequences and tables without keys: on each target whole or not at all. Idempotent. */
export async function makeTables(
  target: ReshardSide,
  dump: SchemaDump,
  run: string,
): Promise<void> {
  await onEachShard(target, async (client, shard) => {
    await ensureTargetTables(client)
    await applyOnce(
      client,
      placeAt(target, shard),
      { run, what: 'tables' },
      `${dump.before}; ${dropGuards}`,
    )
  })
}

const placeAt = (side: ReshardSide, shard: number): string =>
  placeOf(side.shards[shard] as (typeof side.shards)[number])

/** Guards say which rows belong on a shard of the old side; on those of the new one they would refuse the rows that do belong there. */
export const dropGuards = `DO $guards$
DECLARE item record;
BEGIN
  FOR item IN SELECT conrelid::regclass::text AS name, conname FROM pg_constraint
    WHERE contype = 'c' AND conname = '${SETUP_GUARD}'
  LOOP EXECUTE format('ALTER TABLE %s DROP CONSTRAINT %I', item.name, item.conname); END LOOP;
END $guards$`

/** What can stand before any change is applied: the keys that it is applied by, and what cannot be violated. */
export async function makeKeys(
  target: ReshardSide,
  dump: SchemaDump,
  work: EntryWork,
): Promise<void> {
  await makeEntries(target, entriesOf(dump, 'keys'), work)
}

/** Unique indexes besides those keys. Parts of the copy are of several moments: rows of two of them may collide until all are passed. */
export async function makeUnique(
  target: ReshardSide,
  dump: SchemaDump,
  work: EntryWork,
): Promise<void> {
  await makeEntries(target, entriesOf(dump, 'unique'), work)
}

export const hasUnique = (dump: SchemaDump): boolean => entriesOf(dump, 'unique').length > 0

/** Foreign keys (not yet validated), triggers and rules, on each target all or none. Idempotent. */
export async function makeTriggers(
  target: ReshardSide,
  dump: SchemaDump,
  run: string,
): Promise<void> {
  const sql = entriesOf(dump, 'late').map(asNotValid).join('\n')
  if (sql === '') return
  await onEachShard(target, (client, shard) =>
    applyOnce(client, placeAt(target, shard), { run, what: 'triggers' }, sql),
  )
}

/** Checks the foreign keys against the rows; returns the names of those that do not hold, with the server's words. */
export async function validateForeignKeys(
  target: ReshardSide,
  dump: SchemaDump,
): Promise<string[]> {
  const wanted = dump.after.filter(
    (entry) => entry.type === 'FK CONSTRAINT' && asNotValid(entry) !== entry.sql,
  )
  if (wanted.length === 0) return []
  const broken = await onEachShard(target, async (client, shard) => {
    const rows = await adminQuery(
      client,
      `SELECT conrelid::regclass::text AS "table", quote_ident(conname) AS name FROM pg_constraint
        WHERE contype = 'f' AND NOT convalidated`,
    )
    const failed: string[] = []
    for (const row of rows) {
      try {
        await adminQuery(client, `ALTER TABLE ${row['table']} VALIDATE CONSTRAINT ${row['name']}`)
      } catch (error) {
        failed.push(
          `shard ${shard}: ${row['name']} of ${row['table']}: ${toEngineError(error).message}`,
        )
      }
    }
    return failed
  })
  return broken.flat()
}

/**
 * Removes everything that a user made on the targets, for a run that has not cut over: preflight found them empty,
 * so all of it is ours. Schema pgshard stays.
 */
export async function dropTargetObjects(target: ReshardSide): Promise<void> {
  await onEachShard(target, async (client) => {
    await adminQuery(client, dropAll)
  })
}

const dropAll = `DO $drop$
DECLARE item record;
BEGIN
  FOR item IN SELECT nspname FROM pg_namespace
    WHERE nspname NOT IN ('pg_catalog', 'information_schema', 'public', 'pgshard') AND nspname !~ '^pg_'
  LOOP EXECUTE format('DROP SCHEMA %I CASCADE', item.nspname); END LOOP;
  FOR item IN SELECT extname FROM pg_extension WHERE extname <> 'plpgsql'
  LOOP EXECUTE format('DROP EXTENSION IF EXISTS %I CASCADE', item.extname); END LOOP;
  FOR item IN SELECT c.oid::regclass::text AS name,
      CASE c.relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE'
                     WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END AS word
    FROM pg_class c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r','p','v','m','S','f')
    ORDER BY c.relkind = 'S'
  LOOP EXECUTE format('DROP %s IF EXISTS %s CASCADE', item.word, item.name); END LOOP;
  FOR item IN SELECT p.oid::regprocedure::text AS name FROM pg_proc p
    WHERE p.pronamespace = 'public'::regnamespace
  LOOP EXECUTE format('DROP ROUTINE IF EXISTS %s CASCADE', item.name); END LOOP;
  FOR item IN SELECT t.oid::regtype::text AS name FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
    WHERE t.typnamespace = 'public'::regnamespace AND t.typelem = 0
      AND (t.typrelid = 0 OR c.relkind = 'c') AND t.typtype IN ('b', 'c', 'd', 'e', 'r')
  LOOP EXECUTE format('DROP TYPE IF EXISTS %s CASCADE', item.name); END LOOP;
END $drop$`
