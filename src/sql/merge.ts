/** What a MERGE says beyond its tables. Plain data. */
import type { ColumnUse, Value } from './value.js'

export interface MergeAction {
  readonly command: 'insert' | 'update' | 'delete' | 'nothing'
  /** Rows of the target that no row of the source meets. */
  readonly bySource: boolean
  /** INSERT: absent are all columns. UPDATE: those that are assigned. */
  readonly columns?: readonly string[]
  /** INSERT: what each is given; absent: DEFAULT VALUES. */
  readonly values?: readonly (Value | ColumnUse | undefined)[]
}

/** Constants, a row each. */
export interface WrittenSource {
  readonly alias: string
  readonly columns: readonly string[]
  readonly rows: readonly (readonly (Value | undefined)[])[]
  /** VALUES, and not SELECT. */
  readonly isValues: boolean
}

export interface MergeFacts {
  /** Equalities of two columns that ON asks for. */
  readonly joins: readonly { readonly left: ColumnUse; readonly right: ColumnUse }[]
  readonly actions: readonly MergeAction[]
  readonly written?: WrittenSource
}
