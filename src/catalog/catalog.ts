/**
 * What the tables of a database are, as read from one of its shards: an immutable snapshot with look-up through a search path.
 * System catalogs are not in it.
 */
import type { HiddenCode } from './hidden-code.js'

export interface CatalogColumn {
  readonly name: string
  readonly attnum: number
  /** The type beneath domains, and the modifier that it has there. */
  readonly type: number
  readonly typmod: number
  /** pgvector's type, known by its name. */
  readonly isVector?: boolean
  /** Equality is not that of the bytes: a non-deterministic collation. */
  readonly looseEquality?: boolean
  /** Its text is in the order of its bytes: a collation like C. */
  readonly bytewise?: boolean
  readonly notNull: boolean
  /** GENERATED ALWAYS AS (…) STORED or VIRTUAL. */
  readonly generated: boolean
  readonly identity: boolean
  /** Text of the default expression. */
  readonly default?: string
}

export interface CatalogConstraint {
  readonly name: string
  /** An index without a constraint counts as unique. */
  readonly kind: 'primary' | 'unique' | 'exclusion'
  /** Names of the key columns; an expression makes it `undefined`. */
  readonly columns: readonly (string | undefined)[]
}

export interface CatalogForeignKey {
  readonly name: string
  readonly columns: readonly string[]
  /** Oid of the table referred to. */
  readonly target: number
  readonly targetColumns: readonly string[]
  /** A change of the row referred to changes those that refer to it: CASCADE, SET NULL, SET DEFAULT. */
  readonly acts?: true
}

export type RelationKind =
  | 'table'
  | 'partitioned'
  | 'view'
  | 'materialized'
  | 'foreign'
  | 'sequence'

export interface CatalogRelation {
  readonly oid: number
  readonly schema: string
  readonly name: string
  readonly kind: RelationKind
  readonly isTemporary: boolean
  /** In attnum order, dropped columns left out. */
  readonly columns: readonly CatalogColumn[]
  readonly constraints: readonly CatalogConstraint[]
  readonly foreignKeys: readonly CatalogForeignKey[]
  /** Oid of the table that this is a partition of. */
  readonly parent?: number
  /** Oids of the relations that a view reads. */
  readonly reads: readonly number[]
  /** The query of a view, every name with its schema. */
  readonly definition?: string
  readonly hasTriggers: boolean
  readonly hasRules: boolean
  readonly rowSecurity: boolean
}

export interface CatalogFunction {
  readonly schema: string
  readonly name: string
  readonly volatility: 'immutable' | 'stable' | 'volatile'
  readonly isAggregate?: boolean
}

/** An operator that is not PostgreSQL's own. */
export interface CatalogOperator {
  readonly schema: string
  readonly name: string
  /** Type oids; 0 for a missing side. */
  readonly left: number
  readonly right: number
  readonly volatility: CatalogFunction['volatility']
}

export class Catalog {
  readonly #relations = new Map<number, CatalogRelation>()
  readonly #byName = new Map<string, CatalogRelation[]>()
  readonly #functions = new Map<string, CatalogFunction[]>()
  readonly operators: readonly CatalogOperator[]
  /** Schemas that bear the name of a role: what $user in a search path may mean. */
  readonly userSchemas: ReadonlySet<string>
  /** Absent: unknown, so that anything may be hidden anywhere. */
  readonly hiddenCode: HiddenCode | undefined
  /** The database's own collation is like C. */
  readonly isBytewise: boolean

  constructor(
    relations: readonly CatalogRelation[],
    functions: readonly CatalogFunction[],
    operators: readonly CatalogOperator[] = [],
    userSchemas: readonly string[] = [],
    hiddenCode?: HiddenCode,
    isBytewise = false,
  ) {
    this.hiddenCode = hiddenCode
    this.isBytewise = isBytewise
    this.operators = operators
    this.userSchemas = new Set(userSchemas)
    for (const relation of relations) {
      this.#relations.set(relation.oid, relation)
      const same = this.#byName.get(relation.name)
      if (same) same.push(relation)
      else this.#byName.set(relation.name, [relation])
    }
    for (const one of functions) {
      const same = this.#functions.get(one.name)
      if (same) same.push(one)
      else this.#functions.set(one.name, [one])
    }
  }

  get relations(): Iterable<CatalogRelation> {
    return this.#relations.values()
  }

  byOid(oid: number): CatalogRelation | undefined {
    return this.#relations.get(oid)
  }

  /** The relation that a name means: in `schema`, or else in the first schema of `searchPath` that has it. */
  find(
    schema: string | undefined,
    name: string,
    searchPath: readonly string[],
  ): CatalogRelation | undefined {
    const same = this.#byName.get(name)
    if (!same) return undefined
    if (schema !== undefined) return same.find((relation) => relation.schema === schema)
    for (const place of searchPath) {
      const found = same.find((relation) => relation.schema === place)
      if (found) return found
    }
    return undefined
  }

  /** Schemas that have a relation of that name. */
  schemasOf(name: string): readonly string[] {
    return (this.#byName.get(name) ?? []).map((relation) => relation.schema)
  }

  /** User functions of that name, in any schema. */
  functionsNamed(name: string): readonly CatalogFunction[] {
    return this.#functions.get(name) ?? []
  }

  /** The topmost table that a partition belongs to; the relation itself when it is none. */
  rootOf(relation: CatalogRelation): CatalogRelation {
    let top = relation
    while (top.parent !== undefined) {
      const parent = this.#relations.get(top.parent)
      if (!parent) break
      top = parent
    }
    return top
  }

  /** Tables beneath a view, through views; the relation itself when it is none. */
  tablesBeneath(relation: CatalogRelation): readonly CatalogRelation[] {
    const seen = new Set<number>()
    const tables: CatalogRelation[] = []
    const visit = (one: CatalogRelation | undefined): void => {
      if (!one || seen.has(one.oid)) return
      seen.add(one.oid)
      if (one.kind !== 'view') tables.push(one)
      else for (const oid of one.reads) visit(this.#relations.get(oid))
    }
    visit(relation)
    return tables
  }
}
