/**
 * Which table need not be copied whole because its rows matter only where they join rows of another one: that one is copied
 * first, and its values of the joined column are what is asked for. Pure.
 */
import type { GatheredTable, JoinedRows } from '../../plan/gather-program.js'
import type { Conjunct, Level, Predicate } from '../../sql/statement.js'
import { bindColumn } from '../columns.js'
import { columnNamed, equalityOf } from '../key-column.js'
import type { Places } from '../resolve.js'
import type { Table, TableUse } from './gather-tables.js'

/** An equality that every row of `table` fulfils wherever it matters, with a column of table `to`. */
interface Join {
  readonly table: string
  readonly column: string
  readonly to: string
  readonly theirs: string
  readonly type: number
}

/** Types whose text is one under all settings, and whose equality is that of the class. */
const joinable = new Set(['integer', 'text', 'bpchar', 'uuid', 'numeric'])

const equalities = (predicate: Predicate): (Predicate & { op: 'same' })[] => {
  if (predicate.op === 'same') return [predicate]
  return predicate.op === 'and' ? predicate.parts.flatMap(equalities) : []
}

/** As for filters: a condition that any row of the reference must fulfil to take part. */
const binds = ({ relations }: Conjunct, { level, relation }: TableUse): boolean =>
  relations ? relations.includes(relation) : level.relations[relation]?.nullable === false

/** Joins of tables that are read in one place only. */
export function joinsOf(tables: readonly Table[], places: Places): Join[] {
  const named = new Map(tables.filter(({ isWhole }) => !isWhole).map((one) => [one.relation, one]))
  return [...named.values()].flatMap((table) => {
    const [use] = table.uses
    if (!use || table.uses.length > 1 || use.level.kind !== 'select') return []
    return use.level.conjuncts
      .filter((conjunct) => binds(conjunct, use))
      .flatMap(({ predicate }) => equalities(predicate))
      .flatMap((same) => joinOf(same, use.level, use, places, named) ?? [])
  })
}

function joinOf(
  same: Predicate & { op: 'same' },
  level: Level,
  use: TableUse,
  places: Places,
  named: ReadonlyMap<unknown, Table>,
): Join | undefined {
  const sides = [same.left, same.right].map((side) => bindColumn(side, level, places))
  const own = sides.findIndex((side) => side?.level === level && side.relation === use.relation)
  const [mine, other] = own === 0 ? sides : [sides[1], sides[0]]
  if (own < 0 || !mine || !other) return undefined
  const theirs = places.get(other.level)?.[other.relation]?.relation
  const ours = use.resolved.relation
  if (!theirs || !ours || theirs === ours || !named.has(theirs)) return undefined
  const [column, their] = [columnNamed(ours, mine.column), columnNamed(theirs, other.column)]
  const equality = equalityOf(column)
  if (!column || !their || equality === undefined || !joinable.has(equality)) return undefined
  if (equalityOf(their) !== equality) return undefined
  return {
    table: ours.name,
    column: column.name,
    to: theirs.name,
    theirs: their.name,
    type: their.type,
  }
}

const isNarrow = ({ filter, shards }: GatheredTable): boolean =>
  filter !== undefined || shards.kind !== 'all'

/** Joins from what is narrow to what would be copied whole, and on from there. */
export function withJoins(
  tables: readonly GatheredTable[],
  joins: readonly Join[],
): readonly GatheredTable[] {
  const narrow = new Set(tables.filter(isNarrow).map(({ name }) => name))
  const joined = new Map<string, JoinedRows>()
  for (let before = -1; before !== narrow.size; ) {
    before = narrow.size
    for (const { table, column, to, theirs, type } of joins) {
      if (narrow.has(table) || !narrow.has(to)) continue
      joined.set(table, { column, to, theirs, type })
      narrow.add(table)
    }
  }
  if (joined.size === 0) return tables
  return tables.map((table) => {
    const one = joined.get(table.name)
    return one ? { ...table, joined: one } : table
  })
}
