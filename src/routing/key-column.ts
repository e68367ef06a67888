/**
 * Whether a column is what the configuration says of a sharding key: its type (beneath domains) must be read, hashed and
 * compared as the configured one is, or rows would be looked for where they are not.
 */
import type { CatalogColumn, CatalogRelation } from '../catalog/catalog.js'
import { columnTypesOf } from '../datum/key-type.js'
import { engineError } from '../errors/engine-error.js'
import type { Plan } from '../plan/plan.js'
import type { ShardedTable } from '../sharding/sharded-table.js'
import { refuse, unsupported } from './plans.js'
import type { RoutingWorld } from './world.js'

/** Columns of one class that are equal have equal keys; between classes equality is another one (float, name, citext …). */
const classes = new Map<number, string>([
  [20, 'integer'],
  [21, 'integer'],
  [23, 'integer'],
  [25, 'text'],
  [1043, 'text'],
  [1042, 'bpchar'],
  [2950, 'uuid'],
  [1700, 'numeric'],
  [1082, 'date'],
  [1114, 'timestamp'],
  [1184, 'timestamptz'],
])

/** "any", anyelement, anynonarray, anyenum, anycompatible and anycompatiblenonarray. */
const polymorphic = new Set([2276, 2283, 2776, 3500, 5077, 5079])
const firstUserOid = 16_384
const varchar = 1043

const comparing = new Set(['=', '<>', '<', '>', '<=', '>='])

export const columnNamed = (
  relation: CatalogRelation | undefined,
  name: string,
): CatalogColumn | undefined => relation?.columns.find((column) => column.name === name)

/** The class in whose equality a column is compared; undefined where it is none that keys have. */
export const equalityOf = (column: CatalogColumn | undefined): string | undefined =>
  column && !column.looseEquality ? classes.get(column.type) : undefined

/** An operator of a user that the server may choose in the place of its own for a key of type `type`. */
function operatorFor(type: number, world: RoutingWorld): string | undefined {
  const takes = (side: number): boolean => accepts(side, type) || polymorphic.has(side)
  const found = world.catalog?.operators.find(
    ({ name, left, right }) =>
      comparing.has(name) &&
      (takes(left) || takes(right)) &&
      // An own type on the other side is never chosen for literals, but for varchar, which has no operators of its own.
      (type === varchar || (left < firstUserOid && right < firstUserOid)),
  )
  return found && `${found.schema}.${found.name}`
}

const accepts = (side: number, type: number): boolean =>
  side === type || (classes.get(side) !== undefined && classes.get(side) === classes.get(type))

/** Why statements on a sharded table cannot be routed by its key; undefined when they can. */
export function keyMisfit(
  relation: CatalogRelation,
  table: ShardedTable,
  world: RoutingWorld,
): Plan | undefined {
  const column = columnNamed(relation, table.column)
  if (!column) return undefined
  const isOfType =
    table.keyType === 'vector'
      ? column.isVector
      : columnTypesOf[table.keyType].includes(column.type)
  if (!isOfType || column.looseEquality) {
    const found = column.looseEquality ? 'of a non-deterministic collation' : 'of another type'
    return refuse(
      engineError('ROUTE_KEY_TYPE', {
        column: table.column,
        table: relation.name,
        type: table.keyType,
        found,
      }),
    )
  }
  // pgvector's own operators are an extension's, as its type is.
  const operator = table.keyType === 'vector' ? undefined : operatorFor(column.type, world)
  if (operator === undefined) return undefined
  return unsupported(
    `operator ${operator} of a user, which may compare the key of "${relation.name}",`,
    'give it another name or other argument types',
  )
}
