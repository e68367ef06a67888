/**
 * Parameters that stand more than once and have no declared type: the server takes the type that the first place asks for,
 * and the others cast. Such a parameter is a key's value only when all its places ask for one type.
 */
import type { Level, Predicate, Value } from '../sql/statement.js'
import { bindColumn } from './columns.js'
import { columnNamed, equalityOf } from './key-column.js'
import type { Places } from './resolve.js'

/** Stands for the type of every column where there is no catalogue. */
const unread = 'unread'

interface Use {
  readonly value: Value
  readonly type: string | undefined
}

function usesOf(predicate: Predicate, level: Level, places: Places): Use[] {
  const typed = (column: { column: string }, values: readonly (Value | undefined)[]): Use[] => {
    const bound = bindColumn(column, level, places)
    const relation = bound && places.get(bound.level)?.[bound.relation]?.relation
    const type = bound && (relation ? equalityOf(columnNamed(relation, bound.column)) : unread)
    return values.flatMap((value) => (value ? [{ value, type }] : []))
  }
  switch (predicate.op) {
    case 'and':
    case 'or':
      return predicate.parts.flatMap((part) => usesOf(part, level, places))
    case 'equal':
      return typed(predicate.column, predicate.values)
    case 'identical':
      return typed(predicate.column, [predicate.value])
    case 'range':
      return typed(predicate.column, [predicate.low, predicate.high])
    default:
      return []
  }
}

function insertUses(level: Level, places: Places): Use[] {
  const relation = places.get(level)?.[0]?.relation
  const { rows, columns } = level.insert ?? {}
  if (!rows || !relation) return []
  const names = columns ?? relation.columns.map((column) => column.name)
  return rows.flatMap((row) =>
    row.flatMap((value, i): Use[] => {
      if (!value || value === 'default') return []
      return [{ value, type: equalityOf(columnNamed(relation, names[i] ?? '')) }]
    }),
  )
}

const levelUses = (level: Level, places: Places): Use[] => [
  ...level.conjuncts.flatMap(({ predicate }) => usesOf(predicate, level, places)),
  ...insertUses(level, places),
]

const known = new WeakMap<Places, ReadonlySet<number>>()

/** Parameters all of whose places compare with, or fill, columns of one type. */
function trustedIn(places: Places): ReadonlySet<number> {
  const made = known.get(places)
  if (made) return made
  const byIndex = new Map<number, { types: (string | undefined)[]; wanted: number }>()
  for (const { value, type } of [...places.keys()].flatMap((level) => levelUses(level, places))) {
    if (value.kind !== 'parameter') continue
    const entry = byIndex.get(value.index) ?? { types: [], wanted: value.uses ?? 1 }
    byIndex.set(value.index, entry)
    entry.types.push(value.type === undefined ? type : undefined)
  }
  const trusted = new Set<number>()
  for (const [index, { types, wanted }] of byIndex) {
    const [one] = types
    const isSame = one !== undefined && types.every((type) => type === one)
    if (isSame && types.length === wanted) trusted.add(index)
  }
  known.set(places, trusted)
  return trusted
}

/** The value, said to stand once when its other places change nothing. */
export function trust(value: Value, places: Places): Value {
  if (value.kind !== 'parameter' || (value.uses ?? 1) === 1) return value
  return trustedIn(places).has(value.index) ? { ...value, uses: 1 } : value
}
