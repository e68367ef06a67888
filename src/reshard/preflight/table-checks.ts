/** Checks of the tables of a move: what the catalog says in, problems out. Pure. Each problem says how it is mended. */

import { qualifiedName, quoteName } from '../../pg/sql-names.js'
import type { MovePlan, MoveTable, Standing } from '../move-table.js'
import { tableLabel } from '../move-table.js'
import { error, type Problem, warning } from './problem.js'
import type { ForeignKey } from './server-facts.js'
import type { SourceTable } from './source-table.js'

/** Kinds of tables that are refused by name today. */
export function checkKind(table: SourceTable): Problem[] {
  const where = tableLabel(table)
  const found: Problem[] = []
  if (table.kind === 'f') {
    found.push(
      error(
        where,
        'is a foreign table, which is not moved',
        'DROP FOREIGN TABLE, or turn it into a plain table',
      ),
    )
  }
  if (table.persistence === 'u') {
    found.push(
      error(
        where,
        'is unlogged: its changes are not in the WAL',
        `ALTER TABLE ${qualifiedName(table)} SET LOGGED`,
      ),
    )
  }
  for (const trigger of table.alwaysTriggers) {
    found.push(
      error(
        where,
        `trigger "${trigger}" would fire on rows that are moved`,
        `ALTER TABLE ${qualifiedName(table)} ENABLE TRIGGER ${quoteName(trigger)}`,
      ),
    )
  }
  for (const rule of table.alwaysRules) {
    found.push(
      error(
        where,
        `rule "${rule}" would act on rows that are moved`,
        `ALTER TABLE ${qualifiedName(table)} ENABLE RULE ${quoteName(rule)}`,
      ),
    )
  }
  return found
}

/** What the user must be allowed on a source table. */
export function checkAccess(where: string, table: SourceTable, user: string): Problem[] {
  const found: Problem[] = []
  if (!table.isOwned) {
    found.push(
      error(
        where,
        `${tableLabel(table)} belongs to ${table.owner}: user ${user} may not publish or fence it`,
        `GRANT ${quoteName(table.owner)} TO ${quoteName(user)}`,
      ),
    )
  }
  if (table.isFiltered) {
    found.push(
      error(
        where,
        `row security hides rows of ${tableLabel(table)} from user ${user}`,
        `ALTER ROLE ${quoteName(user)} BYPASSRLS, or ALTER TABLE ${qualifiedName(table)} NO FORCE ROW LEVEL SECURITY as its owner`,
      ),
    )
  }
  return found
}

export function checkIdentity(table: MoveTable, source: SourceTable): Problem[] {
  const where = tableLabel(table)
  if (source.identity === 'n') {
    return [
      error(
        where,
        'has replica identity NOTHING',
        `ALTER TABLE ${table.sqlName} REPLICA IDENTITY DEFAULT (with a primary key), or REPLICA IDENTITY FULL`,
      ),
    ]
  }
  if (table.identity.includes(-1)) {
    return [
      error(
        where,
        'has a generated column in its key, which changes do not carry',
        `ALTER TABLE ${table.sqlName} REPLICA IDENTITY USING INDEX one over plain NOT NULL columns`,
      ),
    ]
  }
  if (source.hasTemporalKey) {
    const what =
      'its key is WITHOUT OVERLAPS: no row can be put by it where another one of that key stands'
    const mend = `ALTER TABLE ${table.sqlName} REPLICA IDENTITY USING INDEX one over plain NOT NULL columns, or REPLICA IDENTITY FULL`
    return [error(where, what, mend)]
  }
  if (source.identity === 'f') return table.identity.length > 0 ? [] : keylessNote(table)
  if (source.hasDeferredKey && table.identity.length === 0) {
    return [
      error(
        where,
        'its primary key is DEFERRABLE: changes would not say which row they mean',
        `ALTER TABLE ${table.sqlName} ADD a unique index over NOT NULL columns and REPLICA IDENTITY USING INDEX it`,
      ),
    ]
  }
  if (table.identity.length > 0) return []
  return [
    error(
      where,
      'has no primary key',
      `ALTER TABLE ${table.sqlName} ADD PRIMARY KEY (…), or ALTER TABLE ${table.sqlName} REPLICA IDENTITY FULL`,
    ),
  ]
}

function keylessNote(table: MoveTable): Problem[] {
  return [
    warning(
      tableLabel(table),
      'has no key (identity FULL): it is copied in one part, whole again after a death, and each change searches its rows',
      `ALTER TABLE ${table.sqlName} ADD PRIMARY KEY (…)`,
    ),
  ]
}

/** Rows of several sources come together, or rows that come meet those of shards that serve. */
const mayMeet = ({ sourceCount, isStaged }: MovePlan): boolean => sourceCount > 1 || isStaged

/** The sharding keys of both sides must be in the replica identity, and with several sources in every unique index. */
export function checkKeys(table: MoveTable, source: SourceTable, plan: MovePlan): Problem[] {
  const where = tableLabel(table)
  const found: Problem[] = []
  const wanted = new Set<string>()
  for (const place of [table.to, ...(mayMeet(plan) ? [table.from] : [])]) {
    if (place.kind !== 'sharded') continue
    if (place.keyIndex < 0) {
      found.push(
        error(
          where,
          `has no plain column "${place.keyColumn}" to shard by`,
          'mend [[sharded_tables]] in the configuration',
        ),
      )
    } else wanted.add(place.keyColumn)
  }
  for (const key of wanted) {
    // Identity FULL: the old row tells where it stood, whatever its key.
    if (source.identityColumns.includes(key) || source.identity === 'f') continue
    found.push(
      error(
        where,
        `its replica identity does not hold the sharding key "${key}"`,
        identityMend(table, source, key),
      ),
    )
  }
  if (!mayMeet(plan) || table.from.kind !== 'sharded') return found
  return [
    ...found,
    ...source.uniqueKeys.flatMap((index) => checkUnique(where, 'unique index', index, wanted)),
    ...source.exclusions.flatMap((one) => checkUnique(where, 'exclusion constraint', one, wanted)),
  ]
}

function checkUnique(
  where: string,
  kind: string,
  index: SourceTable['uniqueKeys'][number],
  wanted: ReadonlySet<string>,
): Problem[] {
  return [...wanted]
    .filter((key) => !index.columns.includes(key))
    .map((key) =>
      error(
        where,
        `${kind} "${index.name}" does not hold the sharding key "${key}": rows of two sources could collide`,
        `drop it, or make it unique over (${[key, ...index.columns].map(quoteName).join(', ')})`,
      ),
    )
}

function identityMend(table: MoveTable, source: SourceTable, key: string): string {
  const columns = [key, ...source.primaryKey].map(quoteName).join(', ')
  const index = quoteName(`${table.name}_move_key`)
  return (
    `ALTER TABLE ${table.sqlName} ALTER ${quoteName(key)} SET NOT NULL; ` +
    `CREATE UNIQUE INDEX CONCURRENTLY ${index} ON ${table.sqlName} (${columns}); ` +
    `ALTER TABLE ${table.sqlName} REPLICA IDENTITY USING INDEX ${index}`
  )
}

/** Foreign keys that a row's shard alone cannot check on the new side. */
export function checkForeignKey(key: ForeignKey, plan: MovePlan): Problem[] {
  const find = (label: string): MoveTable | undefined =>
    plan.tables.find((table) => table.lineage.includes(label))
  const child = find(key.table)?.to
  const parent = find(key.parent)?.to
  if (!child || !parent || isLocal(child, parent, key)) return []
  return [
    error(
      key.table,
      `foreign key "${key.name}" to ${key.parent} would cross shards`,
      `ALTER TABLE ${key.table} DROP CONSTRAINT ${quoteName(key.name)}, or put the sharding key of both into it`,
    ),
  ]
}

function isLocal(child: Standing, parent: Standing, key: ForeignKey): boolean {
  if (parent.kind === 'reference') return true
  if (child.kind === 'unsharded' && parent.kind === 'unsharded') return child.shard === parent.shard
  if (child.kind !== 'sharded' || parent.kind !== 'sharded') return false
  const at = key.columns.indexOf(child.keyColumn)
  return child.family === parent.family && at >= 0 && key.parentColumns[at] === parent.keyColumn
}

/** Integers may be wider on the target. */
const width: Readonly<Record<string, number>> = { smallint: 1, integer: 2, bigint: 3 }

function sameColumns(here: SourceTable, there: SourceTable, mayBeWider: boolean): boolean {
  const others = new Map(there.columns.map((column) => [column.name, column.type]))
  return (
    here.columns.length === others.size &&
    here.columns.every(({ name, type }) => {
      const other = others.get(name)
      if (other === undefined || other === type) return other === type
      const [from, to] = [width[type], width[other]]
      return mayBeWider && from !== undefined && to !== undefined && to > from
    })
  )
}

/** A column of a table has another type on the other side. */
export function isWidened(here: readonly SourceTable[], there: readonly SourceTable[]): boolean {
  const others = new Map(there.map((table) => [tableLabel(table), table]))
  return here.some((table) => {
    const twin = others.get(tableLabel(table))
    return twin !== undefined && !sameColumns(table, twin, false)
  })
}

/** Another shard must have the tables of the first source shard, column for column. */
export function checkSameTables(
  where: string,
  first: readonly SourceTable[],
  other: readonly SourceTable[],
  types: 'the same' | 'may be wider' = 'the same',
): Problem[] {
  const mend = 'bring the schemas of the shards in line'
  const here = new Map(other.map((table) => [tableLabel(table), table]))
  const found = first.flatMap((table) => {
    const label = tableLabel(table)
    const twin = here.get(label)
    here.delete(label)
    if (!twin) return [error(where, `has no table ${label}, which source shard 0 has`, mend)]
    const same =
      sameColumns(table, twin, types === 'may be wider') &&
      twin.identityColumns.join() === table.identityColumns.join()
    if (same) return []
    return [error(where, `${label} differs from source shard 0's in columns or key`, mend)]
  })
  return [
    ...found,
    ...[...here.keys()].map((label) =>
      error(where, `has table ${label}, which source shard 0 has not`, mend),
    ),
  ]
}
