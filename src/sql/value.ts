/** A value that is known when a statement runs, and a column, as a text names them. */

/** A value that is known when the statement runs. `type` is the name of a cast around it, as PostgreSQL names it. */
export type Value =
  | {
      readonly kind: 'slot'
      readonly slot: number
      readonly negative: boolean
      readonly literal: 'integer' | 'number' | 'string' | 'bit'
      readonly type?: string
    }
  /** `index` counts from 0; `uses`: how often it stands in the statement, when more than once. */
  | {
      readonly kind: 'parameter'
      readonly index: number
      readonly type?: string
      readonly uses?: number
    }
  | { readonly kind: 'null' }

/** A column as written: `column`, `table.column` or `schema.table.column`. */
export interface ColumnUse {
  readonly column: string
  readonly table?: string
  readonly schema?: string
}
