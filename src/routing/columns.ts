/** Which table a column name in a query level belongs to. Where that cannot be said for certain the answer is undefined. */
import type { ColumnUse, Level } from '../sql/statement.js'
import type { Places, Resolved } from './resolve.js'

/** One column of one table reference. */
export interface BoundColumn {
  readonly level: Level
  readonly relation: number
  readonly column: string
}

export const sameColumn = (a: BoundColumn, b: BoundColumn): boolean =>
  a.level === b.level && a.relation === b.relation && a.column === b.column

function qualifiedColumn(use: ColumnUse, level: Level, places: Places): BoundColumn | undefined {
  const resolved = places.get(level)
  const fits = (index: number): boolean => {
    const relation = level.relations[index]!
    if (relation.alias !== use.table) return false
    const schema = relation.schema ?? resolved?.[index]?.relation?.schema
    return use.schema === undefined || schema === undefined || schema === use.schema
  }
  const index = level.relations.findIndex((_, each) => fits(each))
  if (index >= 0) {
    // Two tables of one name, told apart by a schema that is not known.
    if (level.relations.some((_, each) => each > index && fits(each))) return undefined
    if (level.relations[index]!.renamesColumns) return undefined
    return { level, relation: index, column: use.column }
  }
  // A subquery or CTE of this level that bears the name hides the outer one.
  const hidden = level.derived.includes(use.table!) || level.derived.includes('*')
  if (hidden || !level.parent) return undefined
  return qualifiedColumn(use, level.parent, places)
}

const hasColumn = ({ relation }: Resolved, column: string): boolean =>
  relation?.columns.some((one) => one.name === column) ?? false

const isKey = ({ place, use }: Resolved, column: string): boolean =>
  place.kind === 'sharded' && place.table.column === column && !use.renamesColumns

function bareColumn(column: string, level: Level, places: Places): BoundColumn | undefined {
  const merged = level.merged.get(column)
  if (merged !== undefined) {
    return merged < 0 ? undefined : { level, relation: merged, column }
  }
  if (level.merged.has('*')) return undefined
  const resolved = places.get(level) ?? []
  if (resolved.some((one) => one.use.renamesColumns)) return undefined
  const known = resolved.length > 0 && resolved.every((one) => one.relation !== undefined)
  const owners = resolved.flatMap((one, index) =>
    (known ? hasColumn(one, column) : isKey(one, column)) ? [index] : [],
  )
  // Two owners would be an ambiguous name, which the server refuses.
  if (owners.length === 1) return { level, relation: owners[0]!, column }
  if (owners.length > 1 || level.hasDerived) return undefined
  if (!known) return resolved.length === 1 ? { level, relation: 0, column } : undefined
  return level.parent ? bareColumn(column, level.parent, places) : undefined
}

export function bindColumn(use: ColumnUse, level: Level, places: Places): BoundColumn | undefined {
  return use.table === undefined
    ? bareColumn(use.column, level, places)
    : qualifiedColumn(use, level, places)
}
