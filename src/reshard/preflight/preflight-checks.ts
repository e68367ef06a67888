/** The single checks of preflight: facts in, problems out. Pure. Each problem says how it is mended. */
import type { MovePlan, MoveTable, Standing } from '../move-table.js'
import { tableLabel } from '../move-table.js'
import { qualifiedName, quoteName } from '../sql-names.js'
import type { ForeignKey, ServerFacts } from './server-facts.js'
import type { SourceTable } from './source-table.js'

export interface Problem {
  /** `error` refuses the move, `warning` is said and passed. */
  readonly severity: 'error' | 'warning'
  /** A server or a table. */
  readonly where: string
  readonly what: string
  /** A command, or what to do. */
  readonly mend: string
}

const error = (where: string, what: string, mend: string): Problem => ({
  severity: 'error',
  where,
  what,
  mend,
})

const MIN_VERSION = 150_000

/** `shardsHere`: source shards on the same server, which share its slots. */
export function checkSource(where: string, facts: ServerFacts, shardsHere: number): Problem[] {
  const found: Problem[] = []
  if (facts.version < MIN_VERSION) {
    found.push(
      error(
        where,
        `version ${facts.version} is older than 15`,
        'move to PostgreSQL 15 or newer first',
      ),
    )
  }
  if (facts.walLevel !== 'logical') {
    found.push(
      error(
        where,
        `wal_level is ${facts.walLevel}`,
        'ALTER SYSTEM SET wal_level = logical; then restart the server',
      ),
    )
  }
  // One slot for the stream and one, temporary, for verify.
  const needed = 2 * shardsHere
  if (facts.freeSlots < needed) {
    found.push(
      error(
        where,
        `${facts.freeSlots} replication slots are free, ${needed} are needed`,
        'raise max_replication_slots and restart, or drop slots that nobody uses',
      ),
    )
  }
  if (facts.freeSenders < needed) {
    found.push(
      error(
        where,
        `${facts.freeSenders} walsenders are free, ${needed} are needed`,
        'raise max_wal_senders and restart',
      ),
    )
  }
  if (!facts.mayReplicate) {
    found.push(error(where, 'the user may not replicate', 'ALTER ROLE … REPLICATION'))
  }
  if (!facts.mayCreate) {
    found.push(
      error(where, 'the user may not create a publication', 'GRANT CREATE ON DATABASE … TO …'),
    )
  }
  if (facts.isStandby) found.push(error(where, 'is a standby', 'name the primary in [[databases]]'))
  return [...found, ...checkContents(where, facts)]
}

/** What a source holds that is not moved. */
function checkContents(where: string, facts: ServerFacts): Problem[] {
  const found: Problem[] = []
  if (facts.largeObjects > 0) {
    found.push(
      error(
        where,
        `holds ${facts.largeObjects} large objects, which are not moved`,
        'move them to a bytea column, or remove them with lo_unlink',
      ),
    )
  }
  for (const name of facts.materializedViews) {
    found.push({
      severity: 'warning',
      where,
      what: `materialized view ${name} is made empty on the targets`,
      mend: `REFRESH MATERIALIZED VIEW ${name} on each target after the cutover`,
    })
  }
  for (const name of facts.inheriting) {
    found.push(
      error(
        name,
        'takes part in table inheritance, which is not moved today',
        'make it a plain table: ALTER TABLE … NO INHERIT …',
      ),
    )
  }
  return found
}

export function checkTarget(where: string, facts: ServerFacts, source: ServerFacts): Problem[] {
  const found: Problem[] = []
  if (Math.floor(facts.version / 10_000) < Math.floor(source.version / 10_000)) {
    found.push(
      error(
        where,
        'is of an older major version than the source',
        'use servers of the same or a newer version',
      ),
    )
  }
  if (facts.isStandby) found.push(error(where, 'is a standby', 'name the primary in [[databases]]'))
  if (!facts.mayCreate) {
    found.push(error(where, 'the user may not create schemas', 'GRANT CREATE ON DATABASE … TO …'))
  }
  if (facts.encoding !== source.encoding) {
    found.push(
      error(
        where,
        `has encoding ${facts.encoding}, the source ${source.encoding}`,
        `make it with: CREATE DATABASE … ENCODING '${source.encoding}' TEMPLATE template0`,
      ),
    )
  }
  for (const name of source.extensions) {
    if (facts.availableExtensions.includes(name)) continue
    found.push(
      error(where, `extension "${name}" is not available`, 'install its package on that server'),
    )
  }
  for (const role of source.usedRoles) {
    if (facts.roles.includes(role)) continue
    found.push(error(where, `role "${role}" does not exist`, `CREATE ROLE ${quoteName(role)}`))
  }
  return found
}

const kindNames: Record<string, string> = { p: 'a partitioned table', f: 'a foreign table' }

/** Kinds of tables that are refused by name today. */
export function checkKind(table: SourceTable): Problem[] {
  const where = tableLabel(table)
  const found: Problem[] = []
  const kind = kindNames[table.kind] ?? (table.isPartition ? 'a partition' : undefined)
  if (kind) {
    found.push(
      error(
        where,
        `is ${kind}, which is not moved today`,
        'turn it into a plain table, or leave this database as it is',
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
  return found
}

export function checkIdentity(table: MoveTable, source: SourceTable): Problem[] {
  const where = tableLabel(table)
  if (source.identity === 'f' || source.identity === 'n') {
    return [
      error(
        where,
        `has replica identity ${source.identity === 'f' ? 'FULL' : 'NOTHING'}`,
        `ALTER TABLE ${table.sqlName} REPLICA IDENTITY DEFAULT (with a primary key)`,
      ),
    ]
  }
  if (table.identity.length === 0) {
    return [error(where, 'has no primary key', `ALTER TABLE ${table.sqlName} ADD PRIMARY KEY (…)`)]
  }
  return table.columns.flatMap((column, i) =>
    column.isIdentityAlways && !table.identity.includes(i)
      ? [
          error(
            where,
            `column "${column.name}" is GENERATED ALWAYS AS IDENTITY outside the key`,
            `ALTER TABLE ${table.sqlName} ALTER ${quoteName(column.name)} SET GENERATED BY DEFAULT`,
          ),
        ]
      : [],
  )
}

/** The sharding keys of both sides must be in the replica identity, and with several sources in every unique index. */
export function checkKeys(table: MoveTable, source: SourceTable, plan: MovePlan): Problem[] {
  const where = tableLabel(table)
  const found: Problem[] = []
  const wanted = new Set<string>()
  for (const place of [table.to, ...(plan.sourceCount > 1 ? [table.from] : [])]) {
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
    if (source.identityColumns.includes(key)) continue
    found.push(
      error(
        where,
        `its replica identity does not hold the sharding key "${key}"`,
        identityMend(table, source, key),
      ),
    )
  }
  if (plan.sourceCount === 1 || table.from.kind !== 'sharded') return found
  return [...found, ...source.uniqueKeys.flatMap((index) => checkUnique(where, index, wanted))]
}

function checkUnique(
  where: string,
  index: SourceTable['uniqueKeys'][number],
  wanted: ReadonlySet<string>,
): Problem[] {
  return [...wanted]
    .filter((key) => !index.columns.includes(key))
    .map((key) =>
      error(
        where,
        `unique index "${index.name}" does not hold the sharding key "${key}": rows of two sources could collide`,
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
    plan.tables.find((table) => tableLabel(table) === label)
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

const columnsOf = (table: SourceTable): string =>
  table.columns.map((column) => `${column.name} ${column.type}`).join(', ')

/** Every source shard must have the tables of the first, column for column. */
export function checkSameTables(
  where: string,
  first: readonly SourceTable[],
  other: readonly SourceTable[],
): Problem[] {
  const mend = 'bring the schemas of the source shards in line'
  const here = new Map(other.map((table) => [tableLabel(table), table]))
  const found = first.flatMap((table) => {
    const label = tableLabel(table)
    const twin = here.get(label)
    here.delete(label)
    if (!twin) return [error(where, `has no table ${label}, which shard 0 has`, mend)]
    const same =
      sorted(columnsOf(twin)) === sorted(columnsOf(table)) &&
      twin.identityColumns.join() === table.identityColumns.join()
    return same ? [] : [error(where, `${label} differs from shard 0's in columns or key`, mend)]
  })
  return [
    ...found,
    ...[...here.keys()].map((label) =>
      error(where, `has table ${label}, which shard 0 has not`, mend),
    ),
  ]
}

const sorted = (columns: string): string => columns.split(', ').sort().join(', ')
