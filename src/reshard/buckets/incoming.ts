/**
 * Tables beside those that clients see, on shards that serve: rows that come to them by a move stand there until its
 * cutover, so that nobody reads them twice. They are in schema pgshard, which belongs to no catalogue that is compared.
 */
import { engineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import { quoteLiteral, quoteName } from '../../pg/sql-names.js'
import type { JournalObject } from '../journal/journal.js'
import { ensureTargetTables } from '../journal/journal.js'
import { type MovePlan, type MoveTable, tableLabel } from '../move-table.js'
import { applyOnce } from '../schema/apply-entries.js'
import { onEachShard, placeOf, type ReshardSide, withShard } from '../side.js'

export const incomingTables: JournalObject = {
  kind: 'incoming',
  side: 'target',
  shard: 0,
  name: 'all',
}

/** The tables that get rows: reference tables stand on every shard already. */
export const arrivals = (plan: MovePlan): MoveTable[] =>
  plan.tables.filter(({ sourceShards }) => sourceShards.length > 0)

export const columnList = (table: MoveTable): string =>
  table.columns.map(({ name }) => quoteName(name)).join(', ')

/** Empty, without keys: types alone matter. What an earlier run has left is dropped. Idempotent for one run. */
export async function makeIncoming(
  target: ReshardSide,
  plan: MovePlan,
  run: string,
): Promise<void> {
  const tables = arrivals(plan).map(
    (table) => `
      CREATE TABLE ${table.targetName} AS SELECT ${columnList(table)} FROM ONLY ${table.sqlName} WITH NO DATA;
      COMMENT ON TABLE ${table.targetName} IS ${quoteLiteral(`rows of ${tableLabel(table)} that come by a move`)};`,
  )
  await onEachShard(target, async (client, shard) => {
    await ensureTargetTables(client)
    const place = placeOf(target.shards[shard] as (typeof target.shards)[number])
    await applyOnce(client, place, { run, what: 'tables' }, `${dropSql} ${tables.join('')}`)
  })
}

/** What changes are applied by, when the rows are there. Idempotent. */
export async function keyIncoming(target: ReshardSide, plan: MovePlan, run: string): Promise<void> {
  const sql = arrivals(plan).map((table) => {
    const key = table.identity.map((i) => quoteName(table.columns[i]?.name ?? '')).join(', ')
    const index = key === '' ? '' : `CREATE UNIQUE INDEX ON ${table.targetName} (${key});`
    return `${index} ANALYZE ${table.targetName};`
  })
  await onEachShard(target, async (client, shard) => {
    const place = placeOf(target.shards[shard] as (typeof target.shards)[number])
    await applyOnce(client, place, { run, what: 'keys' }, sql.join('\n'))
  })
}

/** Rows of what comes that stand there already, on a wrong shard, would be met. @throws RESHARD_STRAY_ROWS */
export async function refuseStrays(target: ReshardSide, plan: MovePlan): Promise<void> {
  await onEachShard(target, async (client, shard) => {
    for (const table of arrivals(plan)) {
      const [row] = await adminQuery(
        client,
        `SELECT EXISTS (SELECT FROM ONLY ${table.sqlName} WHERE ${table.moving ?? 'true'})::text AS found`,
      )
      if (row?.['found'] !== 'true') continue
      const server = placeOf(target.shards[shard] as (typeof target.shards)[number])
      throw engineError('RESHARD_STRAY_ROWS', { table: tableLabel(table), server })
    }
  })
}

/** Idempotent. */
export async function dropIncoming(target: ReshardSide): Promise<void> {
  for (const shard of target.shards) {
    await withShard(shard, async (client) => {
      await adminQuery(client, dropSql)
    })
  }
}

const dropSql = `DO $drop$
DECLARE item record;
BEGIN
  FOR item IN SELECT c.oid::regclass::text AS name FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'pgshard' AND c.relkind = 'r' AND c.relname ~ '^incoming_[0-9a-f]{32}$'
  LOOP EXECUTE format('DROP TABLE %s', item.name); END LOOP;
END $drop$;`
