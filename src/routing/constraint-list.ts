/** The constraints of sharded tables that do not hold over shards, one line each, for those who set a database up. */
import type { Catalog, CatalogRelation } from '../catalog/catalog.js'
import { type Query, readCatalog } from '../catalog/read-catalog.js'
import { makeShardMap } from '../sharding/shard-map.js'
import type { ShardedTable, ShardingConfig } from '../sharding/sharded-table.js'
import { generatedConstraints, type LocalConstraint, localConstraints } from './constraints.js'

export interface ListedConstraint {
  readonly text: string
  /** Writes to its table are refused. */
  readonly refuses: boolean
}

const show = (relation: CatalogRelation, { kind, name, columns }: LocalConstraint): string => {
  const list = columns.map((column) => column ?? '(expression)').join(', ')
  return `${kind} constraint "${name}" of ${relation.schema}.${relation.name} (${list})`
}

function linesOf(
  relation: CatalogRelation,
  table: ShardedTable,
  catalog: Catalog,
  sharding: ShardingConfig,
): ListedConstraint[] {
  const world = { catalog, map: makeShardMap(sharding) }
  const { localConstraints: accepted = [], ...strict } = table
  const broken = localConstraints(relation, strict, world)
  return [
    ...broken.map((one) => {
      const refuses = !accepted.includes(one.name)
      const what = refuses
        ? `cannot be kept over several shards: writes to the table are refused until it has the sharding key "${table.column}" or is named in local_constraints`
        : 'holds on each shard only, as local_constraints says'
      return { text: `${show(relation, one)} ${what}`, refuses }
    }),
    ...generatedConstraints(relation, table).map((one) => ({
      text: `${show(relation, one)} rests on generated values, which do not collide; values that are written out are the application's duty`,
      refuses: false,
    })),
  ]
}

/** In the order of the catalogue. */
export function listConstraints(catalog: Catalog, sharding: ShardingConfig): ListedConstraint[] {
  const map = makeShardMap(sharding)
  return [...catalog.relations].flatMap((relation) => {
    const isTable = relation.kind === 'table' || relation.kind === 'partitioned'
    if (!isTable || relation.parent !== undefined || relation.isTemporary) return []
    const found = map.tableOf(relation.schema, relation.name, (column) =>
      relation.columns.some((one) => one.name === column),
    )
    return found.kind === 'sharded' ? linesOf(relation, found.table, catalog, sharding) : []
  })
}

/** The same of a database that is asked now. */
export async function reviewConstraints(sharding: ShardingConfig, ask: Query): Promise<string[]> {
  return listConstraints(await readCatalog(ask), sharding).map(({ text }) => text)
}
