/** What an INSERT … VALUES is to the way that cuts it up, worked out once a template. */
import type { CatalogColumn } from '../../catalog/catalog.js'
import { engineError } from '../../errors/engine-error.js'
import type { KeyPlacer } from '../../sharding/key-placer.js'
import type { ShardedTable } from '../../sharding/sharded-table.js'
import { isBuiltin } from '../../sql/describe-statement.js'
import type { Level, Statement } from '../../sql/statement.js'
import { isForeign, isUniqueId } from '../effects.js'
import { columnNamed } from '../key-column.js'
import type { Places, Resolved } from '../resolve.js'
import type { RoutingWorld } from '../world.js'
import { drawnDefault, isClockDefault, isDrawnDefault } from './write-defaults.js'

export type Row = NonNullable<NonNullable<Level['insert']>['rows']>[number]

export interface Insert {
  readonly statement: Statement
  readonly level: Level
  readonly target: Resolved
  readonly places: Places
  readonly rows: readonly Row[]
  /** Columns in the order of the values, when that is known. */
  readonly names: readonly string[] | undefined
  /** Absent: a reference table. */
  readonly table: ShardedTable | undefined
  readonly placer: KeyPlacer | undefined
  /** Place of the key among the values; -1: it is left out. */
  readonly keyAt: number
  /** Defaults that must not be computed on each shard by itself. */
  readonly filled: readonly Filled[]
  readonly mayDraw: boolean
  readonly shardCount: number
}

export interface Filled {
  readonly column: CatalogColumn
  /** Place among the values; -1: it is left out. */
  readonly at: number
  /** Type of the time that it is; absent: an expression that is asked for row by row. */
  readonly clock?: string
  readonly expression?: string
}

export const missingKey = ({ table, target }: Insert): Error =>
  engineError('ROUTE_KEY_MISSING', { column: table?.column ?? '', table: target.use.name })

/** Only PostgreSQL's own functions may be run ahead of the statement. */
const mayDraw = (statement: Statement, level: Level, world: RoutingWorld): boolean =>
  level.children.length === 0 &&
  statement.functions.every(
    (call) => isUniqueId(call) || (isBuiltin(call) && !isForeign(call, world)),
  )

function filledColumns(
  target: Resolved,
  names: readonly string[] | undefined,
  rows: readonly Row[],
  table: ShardedTable | undefined,
): Filled[] {
  if (!names) return []
  return (target.relation?.columns ?? []).flatMap((column): Filled[] => {
    const at = names.indexOf(column.name)
    if (at >= 0 && !rows.some((row) => at >= row.length || row[at] === 'default')) return []
    const clock = isClockDefault(column)
    if (clock !== undefined) return [{ column, at, clock }]
    // Of a sharded table each shard draws for itself, but for the key, which says where the row belongs.
    const draws = table ? column.name === table.column : isDrawnDefault(column)
    const expression = draws ? drawnDefault(column, target.relation!) : undefined
    return expression === undefined ? [] : [{ column, at, expression }]
  })
}

export function describeInsert(
  statement: Statement,
  level: Level,
  target: Resolved,
  places: Places,
  world: RoutingWorld,
): Insert | undefined {
  const facts = level.insert
  if (!facts?.rows) return undefined
  const { relation, place } = target
  const table = place.kind === 'sharded' ? place.table : undefined
  const width = Math.max(...facts.rows.map((row) => row.length))
  const names = facts.columns ?? relation?.columns.slice(0, width).map((column) => column.name)
  if (table && !names) return undefined
  return {
    statement,
    level,
    target,
    places,
    rows: facts.rows,
    names,
    table,
    placer: table && world.map.placerOf(table, columnNamed(relation, table.column)?.typmod),
    keyAt: table && names ? names.indexOf(table.column) : -1,
    filled: filledColumns(target, names, facts.rows, table),
    mayDraw: mayDraw(statement, level, world),
    shardCount: world.map.shardCount,
  }
}

export const isRagged = (rows: readonly Row[], names: readonly string[] | undefined): boolean =>
  rows.some((row) => row.length !== rows[0]!.length || (names && row.length > names.length))
