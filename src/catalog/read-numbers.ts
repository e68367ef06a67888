/** The numbers (oids) of what users made, by name: they tell which type of one shard is which of another. */
import type { Query } from './read-catalog.js'

export interface NumbersByName {
  readonly types: ReadonlyMap<string, number>
  readonly tables: ReadonlyMap<string, number>
}

const numbersSql = (table: string, name: string, schema: string, where: string): string =>
  `SELECT t.oid, pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(t.${name}) FROM pg_catalog.${table} t JOIN pg_catalog.pg_namespace n ON n.oid = t.${schema} WHERE t.oid >= 16384 AND n.nspname !~ '^pg_(?:toast|temp)' ${where}`

const typesSql = numbersSql('pg_type', 'typname', 'typnamespace', '')
const tablesSql = numbersSql('pg_class', 'relname', 'relnamespace', "AND t.relkind <> 'i'")

export async function readNumbers(query: Query): Promise<NumbersByName> {
  const read = async (sql: string): Promise<ReadonlyMap<string, number>> =>
    new Map((await query(sql)).map(([oid, name]) => [name ?? '', Number(oid)]))
  return { types: await read(typesSql), tables: await read(tablesSql) }
}

/** Numbers of one shard → numbers of another, of what both have and number differently. */
export function numbersAt(
  own: NumbersByName,
  home: NumbersByName,
): { types: ReadonlyMap<number, number>; tables: ReadonlyMap<number, number> } {
  const between = (from: ReadonlyMap<string, number>, to: ReadonlyMap<string, number>) => {
    const pairs = [...from].flatMap(([name, number]): [number, number][] => {
      const there = to.get(name)
      return there === undefined || there === number ? [] : [[number, there]]
    })
    return new Map(pairs)
  }
  return { types: between(own.types, home.types), tables: between(own.tables, home.tables) }
}
