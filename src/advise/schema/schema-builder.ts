/** The tables of a schema while its statements are read, one after the other; becomes a `Catalog` at the end. */
import {
  Catalog,
  type CatalogColumn,
  type CatalogConstraint,
  type CatalogFunction,
  type CatalogRelation,
  type RelationKind,
} from '../../catalog/catalog.js'
import type { Domain } from './column-types.js'

export interface TableName {
  readonly schema: string
  readonly name: string
}

interface WrittenForeignKey {
  readonly name: string
  readonly columns: readonly string[]
  readonly target: TableName
  /** Empty: the primary key of the target. */
  readonly targetColumns: readonly string[]
  readonly acts: boolean
}

export interface TableDraft extends TableName {
  readonly oid: number
  readonly kind: RelationKind
  readonly columns: CatalogColumn[]
  readonly constraints: CatalogConstraint[]
  readonly foreignKeys: WrittenForeignKey[]
  parent?: number
  reads: readonly TableName[]
  hasTriggers: boolean
  hasRules: boolean
  rowSecurity: boolean
}

const firstUserOid = 16_385

/** name, text, bpchar and varchar. */
const collated = new Set([19, 25, 1042, 1043])

const keyOf = ({ schema, name }: TableName): string => `${schema}\0${name}`

export class SchemaBuilder {
  readonly domains = new Map<string, Domain>()
  readonly functions: CatalogFunction[] = []
  /** Where names without a schema are made. */
  currentSchema = 'public'
  readonly #tables = new Map<string, TableDraft>()

  find(name: TableName): TableDraft | undefined {
    return this.#tables.get(keyOf(name))
  }

  make(name: TableName, kind: RelationKind): TableDraft {
    const made: TableDraft = {
      ...name,
      oid: firstUserOid + this.#tables.size,
      kind,
      columns: [],
      constraints: [],
      foreignKeys: [],
      reads: [],
      hasTriggers: false,
      hasRules: false,
      rowSecurity: false,
    }
    this.#tables.set(keyOf(name), made)
    return made
  }

  update(name: TableName, what: Partial<Pick<TableDraft, 'hasTriggers' | 'hasRules'>>): void {
    Object.assign(this.find(name) ?? {}, what)
  }

  /** `isBytewise`: texts of the database are ordered by their bytes, as with collation C. */
  finish(isBytewise: boolean): Catalog {
    const relations = [...this.#tables.values()].map((draft) => this.#relation(draft, isBytewise))
    return new Catalog(relations, this.functions, [], [], undefined, isBytewise)
  }

  #relation(draft: TableDraft, isBytewise: boolean): CatalogRelation {
    const { foreignKeys, reads, ...rest } = draft
    return {
      ...rest,
      columns: isBytewise
        ? rest.columns.map((column) =>
            collated.has(column.type) ? { ...column, bytewise: true } : column,
          )
        : rest.columns,
      isTemporary: false,
      foreignKeys: foreignKeys.flatMap(({ target, targetColumns, acts, ...key }) => {
        const table = this.find(target)
        if (!table) return []
        const columns = targetColumns.length > 0 ? targetColumns : primaryKeyOf(table)
        const made = { ...key, target: table.oid, targetColumns: columns }
        return [acts ? { ...made, acts: true as const } : made]
      }),
      reads: reads.flatMap((name) => this.find(name)?.oid ?? []),
    }
  }
}

const primaryKeyOf = (table: TableDraft): string[] => {
  const primary = table.constraints.find(({ kind }) => kind === 'primary')
  return (primary?.columns ?? []).flatMap((name) => name ?? [])
}
