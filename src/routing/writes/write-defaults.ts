/** What a column's default is to a write on several shards: the time, a value that every draw gives anew, or a plain one. */
import type { CatalogColumn, CatalogRelation } from '../../catalog/catalog.js'
import { immutableBuiltins, stableBuiltins } from '../../sql/builtin-functions.js'
import { clockDefault, quoteName, quoteText } from './write-text.js'

/** The type of the time that the default is; undefined for any other default. */
export const isClockDefault = (column: CatalogColumn): string | undefined =>
  column.identity || column.generated ? undefined : clockDefault(column.default)

const calls = (text: string): string[] =>
  [...text.matchAll(/([\w.]+)\(/g)].map(([, name]) => name!.replace(/^pg_catalog\./, ''))

const isSteady = (name: string): boolean => immutableBuiltins.has(name) || stableBuiltins.has(name)

/** Each time it is computed it may be another: sequences, random values, functions of users. */
export const isDrawnDefault = (column: CatalogColumn): boolean =>
  column.identity ||
  (!column.generated && calls(column.default ?? '').some((name) => !isSteady(name)))

const unqualified = /^nextval\('("[^".]+"|[^".']+)'::regclass\)$/

/** SQL that gives the default's next value on any shard; undefined where there is none. */
export function drawnDefault(column: CatalogColumn, relation: CatalogRelation): string | undefined {
  if (column.generated) return undefined
  const text = column.default
  // The search path under which the default was read need not be the session's.
  if (column.identity || (text !== undefined && unqualified.test(text))) {
    const table = `${quoteName(relation.schema)}.${quoteName(relation.name)}`
    return `pg_catalog.nextval(pg_catalog.pg_get_serial_sequence(${quoteText(table)}, ${quoteText(column.name)})::regclass)`
  }
  return text
}
