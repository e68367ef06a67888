/** What the tables of a source look like, in one hash each: DDL during a move is noticed by its difference. Reads only. */
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'

export interface TableShape {
  /** Of columns, types, defaults, replica identity and place among partitions. */
  readonly columns: string
  /** Of indexes and constraints. */
  readonly keys: string
}

/** By label. */
export type TableShapes = Readonly<Record<string, TableShape>>

// Triggers are left out: the fence is one, and others do not act on what is moved.
const query = `
SELECT n.nspname || '.' || c.relname AS label,
  md5(concat_ws(' ', c.relkind, c.relreplident, c.relispartition, pg_get_expr(c.relpartbound, c.oid),
    (SELECT string_agg(concat_ws(' ', a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attgenerated,
              a.attidentity, pg_get_expr(d.adbin, d.adrelid)), ',' ORDER BY a.attname)
       FROM pg_attribute a LEFT JOIN pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
      WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped))) AS columns,
  md5(concat_ws(' ',
    (SELECT string_agg(pg_get_indexdef(i.indexrelid), ';' ORDER BY i.indexrelid::regclass::text)
       FROM pg_index i WHERE i.indrelid = c.oid AND i.indisvalid),
    (SELECT string_agg(o.conname || ' ' || pg_get_constraintdef(o.oid), ';' ORDER BY o.conname)
       FROM pg_constraint o WHERE o.conrelid = c.oid))) AS keys
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pgshard')
   AND n.nspname !~ '^pg_' AND c.relpersistence <> 't'
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
                      AND d.objid = c.oid AND d.deptype = 'e')`

export async function readShapes(client: HostClient): Promise<TableShapes> {
  const rows = await adminQuery(client, query)
  return Object.fromEntries(
    rows.map((row) => [
      row['label'] as string,
      { columns: row['columns'] as string, keys: row['keys'] as string },
    ]),
  )
}

export interface ShapeChange {
  readonly table: string
  readonly what: string
  /** Rows are as before: an index or a constraint came or went. */
  readonly isOfKeys: boolean
}

/** The first difference that counts most; undefined when there is none. Pure. */
export function changedShape(before: TableShapes, now: TableShapes): ShapeChange | undefined {
  const changes = Object.entries(before).flatMap(([table, shape]): ShapeChange[] => {
    const twin = now[table]
    if (!twin) return [{ table, what: 'it is gone', isOfKeys: false }]
    if (twin.columns !== shape.columns) {
      const what = 'its columns, their types or defaults, or its replica identity are others now'
      return [{ table, what, isOfKeys: false }]
    }
    if (twin.keys === shape.keys) return []
    return [{ table, what: 'its indexes or constraints are others now', isOfKeys: true }]
  })
  const added = Object.keys(now)
    .filter((table) => before[table] === undefined)
    .map((table) => ({ table, what: 'it was not there when the move began', isOfKeys: false }))
  const all = [...changes, ...added]
  return all.find((change) => !change.isOfKeys) ?? all[0]
}
