/** The table that is loaded, as the first shard's catalogue describes it, and the COPY statement for every shard. */
import type pg from 'pg'
import type { ColumnChoice, CopyOptions } from '../copy/copy-options.js'
import { engineError } from '../errors/engine-error.js'
import { adminQuery } from '../pg/admin-query.js'
import { qualifiedName, quoteName } from '../pg/sql-names.js'

export interface CopyColumn {
  readonly name: string
  /** As SQL names it; of a domain the type beneath. */
  readonly type: string
  readonly typeOid: number
  /** Type modifier: length, precision; −1 for none. */
  readonly modifier: number
  /** Text of the default expression. */
  readonly default?: string
  readonly identity: boolean
}

export interface CopyTable {
  readonly schema: string
  readonly name: string
  /** The partitioned table that it is a partition of, at the top; absent: it is none. */
  readonly root?: { readonly schema: string; readonly name: string }
  /** Neither dropped nor generated, in order. */
  readonly columns: readonly CopyColumn[]
  readonly serverMajor: number
}

const columnsSql = `
  select n.nspname, c.relname, a.attname, pg_catalog.format_type(b.oid, null) as type, b.oid as type_oid,
         case t.typtype when 'd' then t.typtypmod else a.atttypmod end as modifier,
         pg_catalog.pg_get_expr(d.adbin, d.adrelid) as default_text, a.attidentity as identity,
         pg_catalog.current_setting('server_version_num') as version, rn.nspname as root_schema, r.relname as root
    from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    join pg_catalog.pg_attribute a on a.attrelid = c.oid
    join pg_catalog.pg_type t on t.oid = a.atttypid
    join pg_catalog.pg_type b on b.oid = case t.typtype when 'd' then t.typbasetype else t.oid end
    left join pg_catalog.pg_class r on c.relispartition and r.oid = pg_catalog.pg_partition_root(c.oid)
    left join pg_catalog.pg_namespace rn on rn.oid = r.relnamespace
    left join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
   where c.oid = pg_catalog.to_regclass($1) and a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
   order by a.attnum`

/** Reads a table by its name as SQL writes it. @throws COPY_TABLE_MISSING */
export async function readCopyTable(
  client: pg.Client,
  table: string,
  shard: number,
): Promise<CopyTable> {
  const rows = await adminQuery(client, columnsSql, [table])
  const [first] = rows
  if (first === undefined) throw engineError('COPY_TABLE_MISSING', { table, shard })
  return {
    schema: first['nspname'] ?? '',
    name: first['relname'] ?? '',
    ...(first['root'] == null
      ? {}
      : { root: { schema: first['root_schema'] ?? '', name: first['root'] } }),
    columns: rows.map((row) => ({
      name: row['attname'] ?? '',
      type: row['type'] ?? '',
      typeOid: Number(row['type_oid']),
      modifier: Number(row['modifier']),
      identity: (row['identity'] ?? '') !== '',
      ...(row['default_text'] == null ? {} : { default: row['default_text'] }),
    })),
    serverMajor: Math.floor(Number(first['version']) / 10_000),
  }
}

/** Checks that the table has each column, once. @throws COPY_COLUMN_MISSING */
export function checkColumns(table: CopyTable, columns: readonly string[]): void {
  const left = new Set(table.columns.map((column) => column.name))
  for (const column of columns)
    if (!left.delete(column))
      throw engineError('COPY_COLUMN_MISSING', { column, table: table.name })
}

const quoteText = (text: string): string =>
  `E'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`
const quoteByte = (byte: number): string => quoteText(String.fromCharCode(byte))

export const tableSql = (table: CopyTable): string => qualifiedName(table)

/** The COPY statement that every shard gets. */
export function copySql(
  table: CopyTable,
  columns: readonly string[],
  options: CopyOptions,
): string {
  const written = writtenOptions(options)
  if (options.format === 'csv') {
    written.push(`quote ${quoteByte(options.quote)}`, `escape ${quoteByte(options.escape)}`)
    written.push(...columnOption('force_null', options.forceNull))
    written.push(...columnOption('force_not_null', options.forceNotNull))
  }
  const names = columns.map(quoteName).join(', ')
  return `copy ${tableSql(table)} (${names}) from stdin (${written.join(', ')})`
}

/** COPY TO of one shard; rows in order when asked. */
export function copyOutSql(
  table: CopyTable,
  columns: readonly string[],
  options: CopyOptions,
  order?: { readonly column: string; readonly collation: string | undefined },
): string {
  const names = columns.map(quoteName).join(', ')
  const written = writtenOptions(options)
  if (options.format === 'csv')
    written.push(`quote ${quoteByte(options.quote)}`, `escape ${quoteByte(options.escape)}`)
  if (order === undefined)
    return `copy ${tableSql(table)} (${names}) to stdout (${written.join(', ')})`
  const collation = order.collation === undefined ? '' : ` collate ${quoteName(order.collation)}`
  const query = `select ${names} from ${tableSql(table)} order by ${quoteName(order.column)}${collation}`
  return `copy (${query}) to stdout (${written.join(', ')})`
}

function writtenOptions(options: CopyOptions): string[] {
  const written = [`format ${options.format}`]
  if (options.header !== 'none')
    written.push(`header ${options.header === 'match' ? 'match' : 'true'}`)
  if (options.encoding !== undefined) written.push(`encoding ${quoteText(options.encoding)}`)
  if (options.format !== 'binary') {
    written.push(`delimiter ${quoteByte(options.delimiter)}`)
    written.push(`null ${quoteText(options.nullMark.toString())}`)
  }
  return written
}

function columnOption(name: string, columns: ColumnChoice): string[] {
  if (columns === 'all') return [`${name} *`]
  if (columns.length === 0) return []
  return [`${name} (${columns.map(quoteName).join(', ')})`]
}
