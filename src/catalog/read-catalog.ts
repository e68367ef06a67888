/** Reads the catalogue of one shard through a query function handed in. Asks for text only, so any driver serves. */
import {
  Catalog,
  type CatalogColumn,
  type CatalogConstraint,
  type CatalogForeignKey,
  type CatalogFunction,
  type CatalogOperator,
  type CatalogRelation,
  type RelationKind,
} from './catalog.js'
import { readHiddenCode } from './hidden-code.js'

/** Rows of one statement, each an array of texts in column order. */
export type Query = (sql: string) => Promise<readonly (readonly (string | null)[])[]>

const user = (schema: string): string =>
  `${schema}.nspname NOT IN ('pg_catalog', 'information_schema') AND ${schema}.nspname !~ '^pg_toast'`

const relationsSql = `
SELECT c.oid, n.nspname, c.relname, c.relkind, c.relpersistence, c.relrowsecurity,
       EXISTS (SELECT 1 FROM pg_catalog.pg_trigger t WHERE t.tgrelid = c.oid AND NOT t.tgisinternal AND t.tgenabled <> 'D'),
       EXISTS (SELECT 1 FROM pg_catalog.pg_rewrite r WHERE r.ev_class = c.oid AND r.rulename <> '_RETURN'),
       (SELECT i.inhparent FROM pg_catalog.pg_inherits i WHERE i.inhrelid = c.oid AND c.relispartition LIMIT 1)
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S') AND ${user('n')}`

/** Names of the collations whose order is that of the bytes (in UTF-8 that of the code points). */
const bytewiseNames = `('C', 'POSIX', 'C.UTF-8', 'C.utf8', 'ucs_basic', 'pg_c_utf8')`

/** Fields whose names differ between versions are asked of the row as JSON. ICU's collations are never bytewise. */
const databaseIsBytewise = `(
  SELECT CASE to_jsonb(d)->>'datlocprovider' WHEN 'b' THEN to_jsonb(d)->>'datlocale' IN ${bytewiseNames}
    WHEN 'i' THEN false ELSE to_jsonb(d)->>'datcollate' IN ${bytewiseNames} END
  FROM pg_catalog.pg_database d WHERE d.datname = pg_catalog.current_database())`

const collationIsBytewise = `(
  SELECT CASE WHEN l.oid = 100 THEN ${databaseIsBytewise} WHEN l.collprovider = 'i' THEN false
    ELSE coalesce(to_jsonb(l)->>'collcollate', to_jsonb(l)->>'colllocale', l.collname) IN ${bytewiseNames} END
  FROM pg_catalog.pg_collation l WHERE l.oid = a.attcollation)`

const columnsSql = `
SELECT a.attrelid, a.attname, a.attnum, a.atttypid, a.atttypmod, a.attnotnull, a.attgenerated <> '', a.attidentity <> '',
       pg_catalog.pg_get_expr(d.adbin, d.adrelid),
       EXISTS (SELECT 1 FROM pg_catalog.pg_collation l WHERE l.oid = a.attcollation AND NOT l.collisdeterministic),
       ${collationIsBytewise},
       EXISTS (SELECT 1 FROM pg_catalog.pg_type t WHERE t.oid = a.atttypid AND t.typname = 'vector')
FROM pg_catalog.pg_attribute a
JOIN pg_catalog.pg_class c ON c.oid = a.attrelid
JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
LEFT JOIN pg_catalog.pg_attrdef d ON d.adrelid = a.attrelid AND d.adnum = a.attnum
WHERE a.attnum > 0 AND NOT a.attisdropped AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND ${user('n')}
ORDER BY a.attrelid, a.attnum`

/** One row a key column; an expression has no name. Unique indexes without a constraint are among them. */
const uniqueSql = `
SELECT i.indrelid, ic.relname, CASE WHEN i.indisprimary THEN 'primary' WHEN i.indisexclusion THEN 'exclusion' ELSE 'unique' END,
       k.place, a.attname
FROM pg_catalog.pg_index i
JOIN pg_catalog.pg_class ic ON ic.oid = i.indexrelid
JOIN pg_catalog.pg_namespace n ON n.oid = ic.relnamespace
CROSS JOIN LATERAL pg_catalog.generate_series(0, i.indnkeyatts - 1) AS k(place)
LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[k.place] AND i.indkey[k.place] > 0
WHERE (i.indisunique OR i.indisexclusion) AND ${user('n')}
ORDER BY i.indrelid, ic.relname, k.place`

const foreignSql = `
SELECT c.oid, c.conrelid, c.conname, c.confrelid, k.place, a.attname, f.attname,
       c.confupdtype NOT IN ('a', 'r') OR c.confdeltype NOT IN ('a', 'r')
FROM pg_catalog.pg_constraint c
CROSS JOIN LATERAL pg_catalog.generate_subscripts(c.conkey, 1) AS k(place)
JOIN pg_catalog.pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[k.place]
JOIN pg_catalog.pg_attribute f ON f.attrelid = c.confrelid AND f.attnum = c.confkey[k.place]
WHERE c.contype = 'f'
ORDER BY c.oid, k.place`

const viewsSql = `
SELECT DISTINCT r.ev_class, d.refobjid
FROM pg_catalog.pg_rewrite r
JOIN pg_catalog.pg_depend d ON d.classid = 'pg_catalog.pg_rewrite'::pg_catalog.regclass AND d.objid = r.oid
WHERE r.rulename = '_RETURN' AND d.refclassid = 'pg_catalog.pg_class'::pg_catalog.regclass AND d.refobjid <> r.ev_class`

/** The path is set, for this statement, before the first definition is written: so every name in them has its schema. */
const definitionsSql = `
WITH bare AS MATERIALIZED (SELECT pg_catalog.set_config('search_path', 'pg_catalog', true) AS path)
SELECT c.oid, pg_catalog.pg_get_viewdef(c.oid)
FROM bare, pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE bare.path = 'pg_catalog' AND c.relkind = 'v' AND ${user('n')}`

const functionsSql = `
SELECT DISTINCT n.nspname, p.proname, p.provolatile, p.prokind <> 'f'
FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_namespace n ON n.oid = p.pronamespace
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')`

/** Operators of users. */
const operatorsSql = `
SELECT n.nspname, o.oprname, o.oprleft, o.oprright, p.provolatile
FROM pg_catalog.pg_operator o
JOIN pg_catalog.pg_namespace n ON n.oid = o.oprnamespace
LEFT JOIN pg_catalog.pg_proc p ON p.oid = o.oprcode
WHERE n.nspname NOT IN ('pg_catalog', 'information_schema')`

/** Domains: what stands beneath, and its modifier. */
const domainsSql = `
SELECT t.oid, t.typbasetype, t.typtypmod FROM pg_catalog.pg_type t WHERE t.typtype = 'd'`

const userSchemasSql = `
SELECT n.nspname FROM pg_catalog.pg_namespace n JOIN pg_catalog.pg_roles r ON r.rolname = n.nspname`

type Row = readonly (string | null)[]

const isTrue = (text: string | null | undefined): boolean => text === 't' || text === 'true'

function grouped<T>(rows: readonly Row[], make: (row: Row) => T): Map<number, T[]> {
  const groups = new Map<number, T[]>()
  for (const row of rows) {
    const key = Number(row[0])
    const group = groups.get(key)
    if (group) group.push(make(row))
    else groups.set(key, [make(row)])
  }
  return groups
}

type Domains = ReadonlyMap<number, { readonly base: number; readonly typmod: number }>

/** A column of a domain has no modifier of its own: the innermost domain that names one has it. */
function beneath(type: number, typmod: number, domains: Domains): { type: number; typmod: number } {
  const domain = domains.get(type)
  if (!domain) return { type, typmod }
  return beneath(domain.base, typmod >= 0 ? typmod : domain.typmod, domains)
}

const toColumn = (row: Row, domains: Domains): CatalogColumn => ({
  name: row[1]!,
  attnum: Number(row[2]),
  ...beneath(Number(row[3]), Number(row[4]), domains),
  ...(isTrue(row[9]) ? { looseEquality: true } : {}),
  ...(isTrue(row[10]) ? { bytewise: true } : {}),
  ...(isTrue(row[11]) ? { isVector: true } : {}),
  notNull: isTrue(row[5]),
  generated: isTrue(row[6]),
  identity: isTrue(row[7]),
  ...(row[8] == null ? {} : { default: row[8] }),
})

/** Rows of one index follow each other; each adds a column. */
function uniqueConstraints(rows: readonly Row[]): Map<number, CatalogConstraint[]> {
  const byTable = new Map<number, CatalogConstraint[]>()
  for (const [table, name, kind, , column] of rows) {
    const list = byTable.get(Number(table)) ?? []
    byTable.set(Number(table), list)
    const last = list.at(-1)
    const known = last?.name === name
    const columns = [...(known ? last!.columns : []), column ?? undefined]
    const made = { name: name!, kind: kind as CatalogConstraint['kind'], columns }
    if (known) list[list.length - 1] = made
    else list.push(made)
  }
  return byTable
}

function foreignKeys(rows: readonly Row[]): Map<number, CatalogForeignKey[]> {
  const made = new Map<string, { table: number; columns: string[]; targets: string[]; row: Row }>()
  for (const row of rows) {
    const one = made.get(row[0]!) ?? { table: Number(row[1]), columns: [], targets: [], row }
    made.set(row[0]!, one)
    one.columns.push(row[5]!)
    one.targets.push(row[6]!)
  }
  const byTable = new Map<number, CatalogForeignKey[]>()
  for (const { table, columns, targets, row } of made.values()) {
    const key = {
      name: row[2]!,
      columns,
      target: Number(row[3]),
      targetColumns: targets,
      ...(isTrue(row[7]) ? { acts: true as const } : {}),
    }
    byTable.set(table, [...(byTable.get(table) ?? []), key])
  }
  return byTable
}

const kinds: Record<string, RelationKind> = {
  r: 'table',
  p: 'partitioned',
  v: 'view',
  m: 'materialized',
  f: 'foreign',
  S: 'sequence',
}

const volatilities: Record<string, CatalogFunction['volatility']> = {
  i: 'immutable',
  s: 'stable',
  v: 'volatile',
}

/** A dozen statements, one after the other; run them in one REPEATABLE READ transaction when the schema may be changing. */
export async function readCatalog(query: Query): Promise<Catalog> {
  const relationRows = await query(relationsSql)
  const domains = new Map(
    (await query(domainsSql)).map(([oid, base, typmod]) => [
      Number(oid),
      { base: Number(base), typmod: Number(typmod) },
    ]),
  )
  const columns = grouped(await query(columnsSql), (row) => toColumn(row, domains))
  const unique = uniqueConstraints(await query(uniqueSql))
  const foreign = foreignKeys(await query(foreignSql))
  const reads = grouped(await query(viewsSql), (row) => Number(row[1]))
  const definitions = new Map(
    (await query(definitionsSql)).map(([oid, text]) => [Number(oid), text ?? undefined]),
  )
  const functionRows = await query(functionsSql)
  const relations = relationRows.map((row): CatalogRelation => {
    const oid = Number(row[0])
    const definition = definitions.get(oid)
    return {
      oid,
      ...(definition === undefined ? {} : { definition }),
      schema: row[1]!,
      name: row[2]!,
      kind: kinds[row[3]!]!,
      isTemporary: row[4] === 't',
      rowSecurity: isTrue(row[5]),
      hasTriggers: isTrue(row[6]),
      hasRules: isTrue(row[7]),
      ...(row[8] == null ? {} : { parent: Number(row[8]) }),
      columns: columns.get(oid) ?? [],
      constraints: unique.get(oid) ?? [],
      foreignKeys: foreign.get(oid) ?? [],
      reads: reads.get(oid) ?? [],
    }
  })
  const functions = functionRows.map(
    ([schema, name, volatility, isOther]): CatalogFunction => ({
      schema: schema!,
      name: name!,
      volatility: volatilities[volatility!]!,
      ...(isTrue(isOther) ? { isAggregate: true } : {}),
    }),
  )
  const operators = (await query(operatorsSql)).map(
    ([schema, name, left, right, volatility]): CatalogOperator => ({
      schema: schema!,
      name: name!,
      left: Number(left),
      right: Number(right),
      volatility: volatilities[volatility ?? 'v'] ?? 'volatile',
    }),
  )
  const userSchemas = (await query(userSchemasSql)).map(([name]) => name!)
  const [bytewise] = await query(`SELECT ${databaseIsBytewise}`)
  const hidden = await readHiddenCode(query)
  return new Catalog(relations, functions, operators, userSchemas, hidden, isTrue(bytewise?.[0]))
}
