/**
 * What one shard cannot see: unique and exclusion constraints without the sharding key, foreign keys between tables that do
 * not stand together. A unique column whose values are generated (sequence, identity, random uuid) passes: generated values
 * of different shards do not collide once the sequences are disjoint.
 */
import type { CatalogColumn, CatalogConstraint, CatalogRelation } from '../catalog/catalog.js'
import type { ShardedTable } from '../sharding/sharded-table.js'
import type { RoutingWorld } from './world.js'

export interface LocalConstraint {
  readonly name: string
  readonly kind: 'unique' | 'foreign key'
  readonly columns: readonly (string | undefined)[]
}

const generating =
  /^(?:(?:"[^"]+"|\w+)\.)?(?:nextval|gen_random_uuid|uuidv4|uuidv7|uuid_generate_v[1-5]|unique_id)\(/

const isGenerated = (column: CatalogColumn | undefined): boolean =>
  column !== undefined && (column.identity || generating.test(column.default ?? ''))

/** A column of it is filled by values that no two shards generate. */
function isFilled(constraint: CatalogConstraint, relation: CatalogRelation): boolean {
  if (constraint.kind === 'exclusion') return false
  return constraint.columns.some((name) =>
    isGenerated(relation.columns.find((column) => column.name === name)),
  )
}

const holdsGlobally = (
  constraint: CatalogConstraint,
  relation: CatalogRelation,
  key: string,
): boolean => constraint.columns.includes(key) || isFilled(constraint, relation)

/** Unique constraints that hold because of how their values come about. */
export const generatedConstraints = (
  relation: CatalogRelation,
  table: ShardedTable,
): readonly LocalConstraint[] =>
  relation.constraints
    .filter((one) => !one.columns.includes(table.column) && isFilled(one, relation))
    .map(({ name, columns }) => ({ name, kind: 'unique', columns }))

/** The constraints of a sharded table that would hold on each shard only; those accepted in the configuration left out. */
export function localConstraints(
  relation: CatalogRelation,
  table: ShardedTable,
  world: Pick<RoutingWorld, 'catalog' | 'map'>,
): readonly LocalConstraint[] {
  const accepted = new Set(table.localConstraints ?? [])
  const unique = relation.constraints
    .filter((one) => !holdsGlobally(one, relation, table.column))
    .map((one): LocalConstraint => ({ name: one.name, kind: 'unique', columns: one.columns }))
  const foreign = relation.foreignKeys
    .filter((one) => {
      const target = world.catalog?.byOid(one.target)
      if (!target) return false
      const root = world.catalog!.rootOf(target)
      const place = world.map.tableOf(root.schema, root.name, (column) =>
        root.columns.some((each) => each.name === column),
      )
      if (place.kind === 'reference') return false
      if (place.kind === 'unsharded') return true
      const at = one.columns.indexOf(table.column)
      return at < 0 || one.targetColumns[at] !== place.table.column
    })
    .map((one): LocalConstraint => ({ name: one.name, kind: 'foreign key', columns: one.columns }))
  return [...unique, ...foreign].filter((one) => !accepted.has(one.name))
}
