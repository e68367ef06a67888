/** What the catalog of one shard says of its user tables. Reads only. */
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'

export interface SourceColumn {
  readonly name: string
  /** Without a type modifier, so that casting to it never cuts a value. */
  readonly type: string
  readonly typeOid: number
  readonly isGenerated: boolean
  readonly isIdentityAlways: boolean
  /** Its binary form means the same on every server of this version. */
  readonly isBinarySafe: boolean
}

export interface SourceTable {
  readonly schema: string
  readonly name: string
  readonly oid: number
  /** relkind: r, p, f. */
  readonly kind: string
  /** relpersistence: p, u. */
  readonly persistence: string
  readonly isPartition: boolean
  /** The partitioned tables that it is a partition of, the nearest first. */
  readonly ancestors: readonly { readonly schema: string; readonly name: string }[]
  /** relreplident: d, n, f, i. */
  readonly identity: string
  /** Columns of the replica identity in index order; empty when there is none. */
  readonly identityColumns: readonly string[]
  readonly primaryKey: readonly string[]
  readonly uniqueKeys: readonly { readonly name: string; readonly columns: readonly string[] }[]
  readonly columns: readonly SourceColumn[]
  readonly bytes: number
  readonly rowEstimate: number
  /** Names of triggers that fire even in replica mode. */
  readonly alwaysTriggers: readonly string[]
  /** Rules on writes that act even in replica mode. */
  readonly alwaysRules: readonly string[]
  readonly owner: string
  /** The user has the rights of its owner. */
  readonly isOwned: boolean
  /** Policies hide rows from the user. */
  readonly isFiltered: boolean
  readonly exclusions: readonly { readonly name: string; readonly columns: readonly string[] }[]
  /** Its primary key is checked at COMMIT, so that no change names its row. */
  readonly hasDeferredKey: boolean
  /** Its replica identity is WITHOUT OVERLAPS (from version 18 on): no INSERT … ON CONFLICT goes by it. */
  readonly hasTemporalKey: boolean
}

// Extensions' tables come with CREATE EXTENSION; ours and the system's are never moved.
const query = `
SELECT c.oid::text AS oid, n.nspname AS schema, c.relname AS name, c.relkind AS kind,
       c.relpersistence AS persistence, c.relispartition::text AS partition, c.relreplident AS identity,
       (SELECT json_agg(json_build_object('schema', an.nspname, 'name', ac.relname) ORDER BY up.place)
          FROM pg_partition_ancestors(c.oid) WITH ORDINALITY AS up(oid, place)
          JOIN pg_class ac ON ac.oid = up.oid JOIN pg_namespace an ON an.oid = ac.relnamespace
         WHERE c.relispartition AND up.oid <> c.oid)::text AS ancestors,
       pg_table_size(c.oid)::text AS bytes, greatest(c.reltuples, 0)::bigint::text AS estimate,
       (SELECT json_agg(json_build_object(
                 'name', a.attname, 'type', format_type(a.atttypid, -1), 'oid', a.atttypid::int8,
                 'generated', a.attgenerated <> '', 'always', a.attidentity = 'a',
                 'binary', t.typtype = 'b' AND t.typelem = 0 AND t.oid < 10000 AND t.typsend <> 0
                           AND t.typname !~ '^(reg|xid|cid|tid|aclitem|pg_)') ORDER BY a.attnum)
          FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid
         WHERE a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped)::text AS columns,
       (SELECT json_agg(json_build_object(
                 'name', ic.relname, 'primary', i.indisprimary, 'replident', i.indisreplident,
                 'plain', i.indpred IS NULL AND i.indexprs IS NULL AND i.indimmediate,
                 'temporal', i.indisexclusion,
                 'columns', (SELECT json_agg(a.attname ORDER BY k.place)
                               FROM unnest(i.indkey::int2[]) WITH ORDINALITY AS k(attnum, place)
                               JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.attnum
                              WHERE k.place <= i.indnkeyatts)))
          FROM pg_index i JOIN pg_class ic ON ic.oid = i.indexrelid
         WHERE i.indrelid = c.oid AND i.indisunique AND i.indisvalid)::text AS indexes,
       (SELECT json_agg(tgname) FROM pg_trigger
         WHERE tgrelid = c.oid AND NOT tgisinternal AND tgenabled IN ('A', 'R')
           AND tgname <> 'pgshard_fence')::text AS triggers,
       (SELECT json_agg(rulename) FROM pg_rewrite
         WHERE ev_class = c.oid AND ev_type <> '1' AND ev_enabled IN ('A', 'R'))::text AS rules,
       pg_get_userbyid(c.relowner) AS owner, pg_has_role(c.relowner, 'USAGE')::text AS owned,
       row_security_active(c.oid)::text AS filtered,
       (SELECT json_agg(json_build_object('name', o.conname, 'columns',
                 (SELECT json_agg(a.attname) FROM pg_attribute a
                    JOIN unnest(o.conkey, o.conexclop) k(attnum, op) ON k.attnum = a.attnum
                    JOIN pg_operator p ON p.oid = k.op WHERE a.attrelid = c.oid AND p.oprname = '=')))
          FROM pg_constraint o WHERE o.conrelid = c.oid AND o.contype = 'x')::text AS exclusions
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
 WHERE c.relkind IN ('r', 'p', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pgshard')
   AND n.nspname !~ '^pg_' AND c.relpersistence <> 't'
   AND NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = 'pg_class'::regclass
                      AND d.objid = c.oid AND d.deptype = 'e')
 ORDER BY n.nspname, c.relname`

interface NamedColumns {
  name: string
  columns: string[] | null
}
interface IndexRow {
  name: string
  primary: boolean
  replident: boolean
  plain: boolean
  temporal: boolean
  columns: string[] | null
}
interface ColumnRow {
  name: string
  type: string
  oid: number
  generated: boolean
  always: boolean
  binary: boolean
}

const list = <T>(json: string | null | undefined): T[] =>
  json ? ((JSON.parse(json) as T[] | null) ?? []) : []

/** The user tables of a shard, by schema and name. */
export async function readSourceTables(client: HostClient): Promise<SourceTable[]> {
  const rows = await adminQuery(client, query)
  return rows.map((row) => {
    const indexes = list<IndexRow>(row['indexes'])
    const primary = indexes.find((index) => index.primary)
    const hasDeferredKey = primary !== undefined && !primary.plain
    const isUsable = !hasDeferredKey && primary?.temporal !== true
    const primaryKey = (isUsable ? primary?.columns : undefined) ?? []
    const named = indexes.find((index) => index.replident)
    const chosen = named?.columns ?? []
    const identity = row['identity'] as string
    const keyOf: Record<string, IndexRow | undefined> = { d: primary, i: named }
    // FULL carries the whole old row, and so the key, when there is one.
    const identityOf: Record<string, string[]> = { d: primaryKey, i: chosen, f: primaryKey }
    return {
      schema: row['schema'] as string,
      name: row['name'] as string,
      oid: Number(row['oid']),
      kind: row['kind'] as string,
      persistence: row['persistence'] as string,
      isPartition: row['partition'] === 'true',
      ancestors: list<{ schema: string; name: string }>(row['ancestors']),
      identity,
      identityColumns: identityOf[identity] ?? [],
      primaryKey,
      uniqueKeys: indexes.map((index) => ({ name: index.name, columns: index.columns ?? [] })),
      columns: list<ColumnRow>(row['columns']).map((column) => ({
        name: column.name,
        type: column.type,
        typeOid: column.oid,
        isGenerated: column.generated,
        isIdentityAlways: column.always,
        isBinarySafe: column.binary,
      })),
      bytes: Number(row['bytes']),
      rowEstimate: Number(row['estimate']),
      alwaysTriggers: list<string>(row['triggers']),
      alwaysRules: list<string>(row['rules']),
      owner: row['owner'] as string,
      isOwned: row['owned'] === 'true',
      isFiltered: row['filtered'] === 'true',
      exclusions: list<NamedColumns>(row['exclusions']).map((one) => ({
        name: one.name,
        columns: one.columns ?? [],
      })),
      hasDeferredKey,
      hasTemporalKey: keyOf[identity]?.temporal === true,
    }
  })
}
