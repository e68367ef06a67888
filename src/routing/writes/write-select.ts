/** INSERT … SELECT into a sharded table: every shard for itself, where the selected key is the key of the rows that are read; else the rows are read first. */
import type { CatalogColumn } from '../../catalog/catalog.js'
import type { ShardedTable } from '../../sharding/sharded-table.js'
import type { Level, Statement } from '../../sql/statement.js'
import { bindColumn } from '../columns.js'
import { columnNamed } from '../key-column.js'
import { compilePin, keyClass } from '../pins.js'
import type { Places, Resolved } from '../resolve.js'
import type { RoutingWorld } from '../world.js'
import { compileSelectInsert } from './select-insert.js'
import { isClockDefault } from './write-defaults.js'
import { scatterTo, type WriteRoute } from './write-text-for-all.js'
import { type Anchor, notTogether, sameRule } from './write-together.js'

type Sharded = Resolved & { place: { kind: 'sharded'; table: ShardedTable } }

const sameStored = (from: CatalogColumn | undefined, to: CatalogColumn | undefined): boolean =>
  from === undefined ||
  to === undefined ||
  to.typmod < 0 ||
  (from.type === to.type && from.typmod === to.typmod)

/** The key of the rows that are read, when it is what is put into the target's key. */
function selectedKey(root: Level, target: Sharded, places: Places): Anchor | undefined {
  const { source, selected, columns } = root.insert!
  const { table } = target.place
  const position = columns
    ? columns.indexOf(table.column)
    : target.relation?.columns.findIndex((column) => column.name === table.column)
  const use = position === undefined || position < 0 ? undefined : selected?.[position]
  if (!source || !use || 'kind' in use) return undefined
  const bound = bindColumn(use, source, places)
  const from = bound && places.get(bound.level)?.[bound.relation]
  if (!bound || from?.place.kind !== 'sharded' || from.use.nullable) return undefined
  if (from.place.table.column !== bound.column || !sameRule(from.place.table, table))
    return undefined
  const stored = sameStored(
    columnNamed(from.relation, bound.column),
    columnNamed(target.relation, table.column),
  )
  return stored ? { key: bound, table: from.place.table } : undefined
}

/** A column that is left out has the time as its default, which is to be one on all shards. */
const leavesClock = ({ insert }: Level, { relation }: Sharded): boolean =>
  (relation?.columns ?? []).some(
    (column) =>
      insert?.columns?.includes(column.name) !== true && isClockDefault(column) !== undefined,
  )

export function compileSelectedInsert(
  statement: Statement,
  root: Level,
  target: Sharded,
  places: Places,
  world: RoutingWorld,
): WriteRoute {
  const anchor = selectedKey(root, target, places)
  const source = root.insert?.source
  const reason =
    anchor && source
      ? (source.notPlain ?? notTogether(statement, root, anchor, places, world))
      : 'a sharding key that is not the key of the rows selected'
  if (!anchor || reason !== undefined || leavesClock(root, target)) {
    return compileSelectInsert(statement, root, target, places, world)
  }
  const shardsOf = compilePin(
    keyClass(anchor.key, places),
    world.map.placerOf(anchor.table),
    places,
  )
  const reasons = ['every shard inserts what it selects of its own rows']
  return (run) => scatterTo(statement, root, shardsOf(run), run, world, reasons)
}
