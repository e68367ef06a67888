/**
 * Columns that mean the same: joined by foreign keys of the schema and by equality in the workload. Each group of them is a
 * way to shard: its tables would lie side by side.
 */
import type { Catalog, CatalogColumn, CatalogRelation } from '../catalog/catalog.js'
import type { HashedKeyType } from '../datum/key-type.js'
import type { ColumnOf, StatementFacts } from './workload/statement-facts.js'

export interface WeighedFacts {
  readonly facts: StatementFacts
  readonly calls: number
}

export interface KeyColumn extends ColumnOf {
  readonly keyType: HashedKeyType
  /** Calls that ask for rows by a constant for it. */
  readonly asked: number
  /** Those, and the INSERTs that give it. */
  readonly pinned: number
}

/** A way to shard: for each of its tables the column that would be the key. */
export interface KeyGroup {
  /** The name that most of its columns have. */
  readonly name: string
  readonly columns: readonly KeyColumn[]
  readonly pinned: number
  readonly asked: number
}

export interface TableTraffic {
  readonly reads: number
  readonly writes: number
}

/** Not dates and times: new rows all have new ones, and questions come in ranges. */
const keyTypeNames = new Map<number, HashedKeyType>([
  [20, 'bigint'],
  [21, 'smallint'],
  [23, 'integer'],
  [25, 'text'],
  [1042, 'bpchar'],
  [1043, 'varchar'],
  [1700, 'numeric'],
  [2950, 'uuid'],
])

/** The key type that a column would be configured with; undefined where it can be none. */
export const keyTypeOf = (column: CatalogColumn): HashedKeyType | undefined =>
  column.looseEquality || column.generated ? undefined : keyTypeNames.get(column.type)

const idOf = ({ table, column }: ColumnOf): string => `${table.oid}.${column}`

/** A statement that names a column twice counts once. */
function count(counts: Map<string, number>, columns: readonly ColumnOf[], calls: number): void {
  for (const id of new Set(columns.map(idOf))) counts.set(id, (counts.get(id) ?? 0) + calls)
}

export class ColumnGraph {
  readonly #catalog: Catalog
  readonly #asked = new Map<string, number>()
  readonly #inserted = new Map<string, number>()
  readonly #changed = new Set<string>()
  readonly #parents = new Map<string, string>()
  readonly #columns = new Map<string, KeyColumn>()
  readonly #traffic = new Map<number, { reads: number; writes: number }>()

  constructor(catalog: Catalog, workload: readonly WeighedFacts[]) {
    this.#catalog = catalog
    for (const one of workload) this.#count(one)
    for (const table of this.tables) {
      for (const { name } of table.columns) this.#enter(table, name)
    }
    for (const table of this.tables) this.#joinForeignKeys(table)
    for (const { facts } of workload) for (const [a, b] of facts.joined) this.#join(a, b)
  }

  /** Tables that hold rows of their own. */
  get tables(): CatalogRelation[] {
    const own = [...this.#catalog.relations].filter(
      ({ kind, parent }) => (kind === 'table' || kind === 'partitioned') && parent === undefined,
    )
    return own.sort((a, b) => (placeName(a) < placeName(b) ? -1 : 1))
  }

  trafficOf(table: CatalogRelation): TableTraffic {
    return this.#traffic.get(table.oid) ?? { reads: 0, writes: 0 }
  }

  /** Largest first: by how often its columns are named. */
  groups(): KeyGroup[] {
    const members = new Map<string, KeyColumn[]>()
    for (const column of this.#columns.values()) {
      const root = this.#root(idOf(column))
      members.set(root, [...(members.get(root) ?? []), column])
    }
    const groups = [...members.values()].map((columns) => groupOf(columns))
    return apart(groups.filter(({ asked }) => asked > 0)).sort(
      (a, b) => b.pinned - a.pinned || (a.name < b.name ? -1 : 1),
    )
  }

  /** The column by which a table is found most often by itself. */
  ownKey(table: CatalogRelation): KeyColumn | undefined {
    const own = [...this.#columns.values()].filter((one) => one.table === table)
    return best(own.filter(({ asked }) => asked > 0))
  }

  #count({ facts, calls }: WeighedFacts): void {
    count(this.#asked, facts.pinned, calls)
    count(this.#inserted, facts.inserted, calls)
    for (const column of facts.changed) this.#changed.add(idOf(column))
    for (const { oid } of facts.reads) this.#trafficFor(oid).reads += calls
    for (const { oid } of facts.writes) this.#trafficFor(oid).writes += calls
  }

  #trafficFor(oid: number): { reads: number; writes: number } {
    const made = this.#traffic.get(oid) ?? { reads: 0, writes: 0 }
    this.#traffic.set(oid, made)
    return made
  }

  /** A column that UPDATE assigns would make rows wander: it is no key. */
  #enter(table: CatalogRelation, column: string): void {
    const id = idOf({ table, column })
    const keyType = keyTypeOf(table.columns.find(({ name }) => name === column)!)
    if (keyType === undefined || this.#changed.has(id)) return
    const asked = this.#asked.get(id) ?? 0
    const pinned = asked + (this.#inserted.get(id) ?? 0)
    this.#columns.set(id, { table, column, keyType, asked, pinned })
  }

  #joinForeignKeys(table: CatalogRelation): void {
    for (const { columns, target, targetColumns } of table.foreignKeys) {
      const parent = this.#catalog.byOid(target)
      columns.forEach((column, index) => {
        const other = targetColumns[index]
        if (parent && other !== undefined)
          this.#join({ table, column }, { table: parent, column: other })
      })
    }
  }

  #join(a: ColumnOf, b: ColumnOf): void {
    const [left, right] = [this.#columns.get(idOf(a)), this.#columns.get(idOf(b))]
    if (!left || !right || classOf(left.keyType) !== classOf(right.keyType)) return
    const [from, to] = [this.#root(idOf(a)), this.#root(idOf(b))].sort()
    if (from !== to) this.#parents.set(to!, from!)
  }

  #root(id: string): string {
    let at = id
    for (let up = this.#parents.get(at); up !== undefined; up = this.#parents.get(at)) at = up
    return at
  }
}

const integers = new Set(['bigint', 'integer', 'smallint'])
const texts = new Set(['text', 'varchar'])

/** Rows of two tables meet on one shard only when equal keys hash alike. */
const classOf = (type: HashedKeyType): string =>
  integers.has(type) ? 'integer' : texts.has(type) ? 'text' : type

export const placeName = ({ schema, name }: CatalogRelation): string => `${schema}.${name}`

const isKeyOf = ({ table, column }: ColumnOf): number =>
  table.constraints.some(({ columns }) => columns.includes(column)) ? 1 : 0

/** Of several columns of one table the one that is named most, then the one in a key of the table. */
function best(columns: readonly KeyColumn[]): KeyColumn | undefined {
  return [...columns].sort(
    (a, b) => b.pinned - a.pinned || isKeyOf(b) - isKeyOf(a) || (a.column < b.column ? -1 : 1),
  )[0]
}

/** Groups of one name are told apart by a table. */
const apart = (groups: readonly KeyGroup[]): KeyGroup[] =>
  groups.map((group) => {
    const isAlone = groups.every((one) => one === group || one.name !== group.name)
    const column = group.columns.find((one) => one.column === group.name)
    return isAlone || !column ? group : { ...group, name: `${column.table.name}.${column.column}` }
  })

/** What most of the columns are called, or the one that is named most; `id` says nothing where another says whose. */
function commonName(columns: readonly KeyColumn[]): string {
  const names = new Map<string, { count: number; pinned: number }>()
  for (const { column, pinned } of columns) {
    const known = names.get(column) ?? { count: 0, pinned: 0 }
    names.set(column, { count: known.count + 1, pinned: known.pinned + pinned })
  }
  const isBare = (name: string): number => (name === 'id' ? 1 : 0)
  const [first] = [...names].sort(
    ([a, x], [b, y]) =>
      y.count - x.count || isBare(a) - isBare(b) || y.pinned - x.pinned || (a < b ? -1 : 1),
  )
  return first![0]
}

function groupOf(members: readonly KeyColumn[]): KeyGroup {
  const tables = [...new Set(members.map(({ table }) => table))]
  const columns = tables
    .map((table) => best(members.filter((one) => one.table === table))!)
    .sort((a, b) => (placeName(a.table) < placeName(b.table) ? -1 : 1))
  const common = commonName(columns)
  const name = columns.length === 1 ? `${columns[0]!.table.name}.${common}` : common
  const sum = (one: 'asked' | 'pinned') => columns.reduce((all, column) => all + column[one], 0)
  return { name, columns, pinned: sum('pinned'), asked: sum('asked') }
}
