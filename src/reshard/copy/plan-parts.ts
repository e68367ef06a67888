/**
 * Cuts tables into parts: by a sample of the keys, ordered by the server, so that each part has about as many rows.
 * The cuts are kept in the journal once; what is cut already stays.
 */
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { quoteName } from '../../pg/sql-names.js'
import type { Journal } from '../journal/journal.js'
import { type MovePlan, type MoveTable, tableLabel, tablesOf } from '../move-table.js'
import { onEachShard, type ReshardSide } from '../side.js'
import { cuttable, type Part, partName, partsOf } from './part.js'

const MAX_PARTS = 4_000
/** Sampled rows a part. */
const SAMPLE_ROWS = 200
const SAMPLE_PAGES = 8

/** Reads the parts of a run, after cutting the tables that have none yet. */
export async function planParts(
  journal: Journal,
  plan: MovePlan,
  source: ReshardSide,
  partBytes: number,
): Promise<Part[]> {
  const kept = new Set((await journal.parts()).map((one) => partName(one.table, one.source, 0)))
  await onEachShard(source, async (client, shard) => {
    for (const table of tablesOf(plan, shard)) {
      if (kept.has(partName(tableLabel(table), shard, 0))) continue
      const cuts = await cutsOf(client, table, partBytes)
      const lows = [null, ...cuts.map((cut) => JSON.stringify(cut))]
      await journal.keepParts(tableLabel(table), shard, lows)
    }
  })
  return partsOf(await journal.parts(), plan.tables)
}

async function cutsOf(
  client: HostClient,
  table: MoveTable,
  partBytes: number,
): Promise<(string | null)[][]> {
  const [size] = await adminQuery(
    client,
    `SELECT pg_table_size($1::regclass)::text AS bytes, pg_relation_size($1::regclass)::text AS heap,
            greatest(reltuples, 0)::text AS rows
       FROM pg_class WHERE oid = $1::regclass`,
    [table.sqlName],
  )
  const bytes = Number(size?.['bytes'] ?? 0)
  const wanted = Math.min(MAX_PARTS, Math.floor(bytes / partBytes))
  if (wanted < 2) return []
  const ordered = await byteOrdered(client, table)
  const columns = cuttable(table, (name) => ordered.has(name))
  if (columns.length === 0) return []
  const heapBytes = Number(size?.['heap'] ?? 0)
  // Never analysed: a row of 100 bytes is a fair guess.
  const rows = Number(size?.['rows'] ?? 0) || heapBytes / 100
  // Whole pages are sampled: few of them would say little.
  const wantedShare = Math.max(
    (SAMPLE_ROWS * wanted) / rows,
    (SAMPLE_PAGES * wanted * 8192) / heapBytes,
  )
  const percent = Math.min(100, 100 * wantedShare)
  return sampleCuts(client, table, columns, { wanted, percent })
}

async function sampleCuts(
  client: HostClient,
  table: MoveTable,
  columns: readonly number[],
  size: { wanted: number; percent: number },
): Promise<(string | null)[][]> {
  const names = columns.map((index) => quoteName(table.columns[index]?.name ?? ''))
  const texts = columns.map((_, i) => `k${i}`)
  const rows = await adminQuery(
    client,
    `SELECT DISTINCT ON (r) ${texts.map((name) => `${name}::text`).join(', ')} FROM (
       SELECT ${names.map((name, i) => `${name} AS k${i}`).join(', ')},
              rank() OVER (ORDER BY ${names.join(', ')}) AS r,
              row_number() OVER (ORDER BY ${names.join(', ')}) AS place, count(*) OVER () AS total
         FROM ONLY ${table.sqlName} TABLESAMPLE SYSTEM (${size.percent}) REPEATABLE (0)) AS sample
      WHERE place % greatest(1, ceil(total::numeric / ${size.wanted})::bigint) = 0 AND r > 1 ORDER BY r`,
  )
  return rows.map((row) => texts.map((name) => row[name] ?? null))
}

/** The text columns of a table that the server orders by their bytes. */
async function byteOrdered(client: HostClient, table: MoveTable): Promise<Set<string>> {
  const rows = await adminQuery(
    client,
    `SELECT a.attname AS name FROM pg_attribute a JOIN pg_collation c ON c.oid = a.attcollation
       CROSS JOIN (SELECT to_jsonb(d) AS d FROM pg_database d WHERE datname = current_database()) AS here
      WHERE a.attrelid = $1::regclass
        AND (c.collname IN ('C', 'POSIX', 'ucs_basic') OR (c.collname = 'default' AND (
              (d->>'datlocprovider' = 'c' AND d->>'datcollate' IN ('C', 'POSIX'))
              OR d->>'datlocprovider' = 'b')))`,
    [table.sqlName],
  )
  return new Set(rows.map((row) => row['name'] as string))
}
