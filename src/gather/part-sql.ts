/** The texts by which rows leave their shards, and by which the server that finishes takes them in. Pure. */
import type { GatheredColumn, GatheredTable, JoinedRows } from '../plan/gather-program.js'
import { quoteLiteral } from '../server/settings.js'

/** Types beyond this number are users', and their numbers differ between databases. */
const FIRST_USER_OID = 16_384

/**
 * oid aliases and arrays of them, whose binary form is a number that means another object on another server; aclitem, which
 * has no binary form.
 */
const numberedByServer = new Set([
  24, 1008, 1033, 1034, 2202, 2203, 2204, 2205, 2206, 2207, 2208, 2209, 2210, 2211, 3734, 3735,
  3769, 3770, 4089, 4090, 4096, 4097, 4191, 4192,
])

const BPCHAR = 1042

/** The form in which rows travel. */
export type RowFormat = 'binary' | 'text'

/** One table with the form of its rows. */
export interface Part {
  readonly table: GatheredTable
  readonly format: RowFormat
}

export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** Binary is exact and cheap, where every server reads it alike. */
export const formatOf = ({ columns }: GatheredTable): RowFormat =>
  columns.every(({ type }) => type < FIRST_USER_OID && !numberedByServer.has(type))
    ? 'binary'
    : 'text'

const columnList = ({ columns }: GatheredTable): string =>
  columns.map(({ name }) => quoteName(name)).join(', ')

const source = ({ schema, name, only }: GatheredTable): string =>
  `${only ? 'ONLY ' : ''}${quoteName(schema)}.${quoteName(name)}`

const where = ({ filter }: GatheredTable): string =>
  filter === undefined ? '' : ` WHERE ${filter}`

const copyName = ({ name }: GatheredTable): string => `pg_temp.${quoteName(name)}`

/** The rows of one table that may matter. */
const selectOf = (table: GatheredTable): string =>
  `SELECT ${columnList(table)} FROM ${source(table)}${where(table)}`

export const copyOut = ({ table, format }: Part): string =>
  `COPY (${selectOf(table)}) TO STDOUT (FORMAT ${format})`

/** What a value is, in the text form that its type reads. A cast of bpchar would take its blanks away. */
const asText = ({ name, type }: GatheredColumn): string => {
  const column = quoteName(name)
  return type === BPCHAR
    ? `CASE WHEN ${column} IS NOT NULL THEN pg_catalog.concat(${column}) END`
    : `${column}::pg_catalog.text`
}

/**
 * Several tables in one statement, so that they come from one snapshot of a READ COMMITTED transaction: the table's
 * number, its columns as text, NULLs behind them. The last branch gives no rows; it calls a function that forbids
 * parallel plans, so that the branches come one after the other.
 */
export function copyOutTogether(parts: readonly Part[]): string {
  const width = Math.max(...parts.map(({ table }) => table.columns.length))
  const nulls = (count: number): string[] =>
    Array.from({ length: count }, () => 'NULL::pg_catalog.text')
  const branches = parts.map(({ table }, number) => {
    const texts = [...table.columns.map(asText), ...nulls(width - table.columns.length)]
    return `SELECT ${number}, ${texts.join(', ')} FROM ${source(table)}${where(table)}`
  })
  const never = `SELECT 0, ${nulls(width).join(', ')} WHERE false AND pg_catalog.set_config('pgshard.never', '', true) IS NULL`
  return `COPY (${[...branches, never].join(' UNION ALL ')}) TO STDOUT (FORMAT text)`
}

/** Under these every value's text is read back as the same value. */
export const exactText: ReadonlyMap<string, string> = new Map([
  ['datestyle', 'ISO'],
  ['intervalstyle', 'postgres'],
  ['extra_float_digits', '3'],
  ['bytea_output', 'hex'],
  ['xmloption', 'content'],
])

export const setExactText = (): string[] =>
  [...exactText].map(([name, value]) => `SET LOCAL ${name} TO ${value}`)

/** An empty copy of a table's columns, with their types, modifiers and collations. */
export const createCopy = (table: GatheredTable): string =>
  `CREATE TEMPORARY TABLE ${quoteName(table.name)} AS ${`SELECT ${columnList(table)} FROM ${source(table)}`} WITH NO DATA`

/** After the keys of its tables: its GROUP BY may lean on them. */
export const createView = ({
  name,
  sql,
}: {
  readonly name: string
  readonly sql: string
}): string => `CREATE TEMPORARY VIEW ${quoteName(name)} AS ${sql}`

/** The rows that stand on this very server. */
export const takeOwn = (table: GatheredTable): string =>
  `INSERT INTO ${copyName(table)} ${selectOf(table)}`

export const copyIn = ({ table, format }: Part): string =>
  `COPY ${copyName(table)} FROM STDIN (FORMAT ${format})`

export const addKey = (table: GatheredTable): string[] =>
  table.primaryKey
    ? [
        `ALTER TABLE ${copyName(table)} ADD PRIMARY KEY (${table.primaryKey.map(quoteName).join(', ')})`,
      ]
    : []

export const analyze = (table: GatheredTable): string => `ANALYZE ${copyName(table)}`

/** More values than these are not sent to the shards: then the whole table comes. */
const MOST_KEYS = 5000
const MOST_KEY_BYTES = 262_144

/** The values of a copy's column as one array; no row when there are too many. */
export const keysOf = ({ to, theirs }: JoinedRows): string =>
  `SELECT pg_catalog.array_agg(k)::pg_catalog.text FROM (SELECT DISTINCT ${quoteName(theirs)} AS k FROM pg_temp.${quoteName(to)} WHERE ${quoteName(theirs)} IS NOT NULL LIMIT ${MOST_KEYS + 1}) s HAVING pg_catalog.count(*) <= ${MOST_KEYS}`

const typeNames: Readonly<Record<number, string>> = {
  20: 'int8',
  21: 'int2',
  23: 'int4',
  25: 'text',
  1042: 'bpchar',
  1043: 'varchar',
  1700: 'numeric',
  2950: 'uuid',
}

/** Read as UTF-8, whatever the encoding of the client in which the server has sent it. */
export const wasReadable = (text: string, encoding: string | undefined): boolean =>
  encoding === 'UTF8' || !/[\u0080-\uffff]/.test(text)

/** The table with no more rows than join these values, as `keysOf` gave them. */
export function joinedTo(table: GatheredTable, keys: string | null): GatheredTable {
  const { joined, ...whole } = table
  const type = joined && typeNames[joined.type]
  const values = keys ?? '{}'
  if (!type || values.length > MOST_KEY_BYTES) return whole
  const filter = `${quoteName(joined.column)} = ANY (${quoteLiteral(values)}::pg_catalog.${type}[])`
  return { ...whole, filter }
}

/** What the copies take, on disk or not. */
export const sizeOf = (tables: readonly GatheredTable[]): string =>
  `SELECT ${tables.map((table) => `pg_catalog.pg_table_size('${copyName(table).replaceAll("'", "''")}'::pg_catalog.regclass)`).join(' + ')}`
