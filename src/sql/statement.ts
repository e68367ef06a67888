/**
 * The facts about one statement: what it is, what it does to the session, which tables stand in which query level, and
 * what its conditions say of their columns. Immutable and without literals: a value names the slot where it stands.
 */
import type { Effects, StatementKind } from '../plan/effects.js'
import type { DdlFacts } from './describe-ddl.js'
import type { MergeFacts } from './merge.js'
import type { SelectFacts } from './select.js'
import type { ColumnUse, Value } from './value.js'

export type { ColumnUse, Value } from './value.js'

export type Predicate =
  | { readonly op: 'and' | 'or'; readonly parts: readonly Predicate[] }
  | { readonly op: 'equal'; readonly column: ColumnUse; readonly values: readonly Value[] }
  /** = ANY(array), the array being one value. */
  | { readonly op: 'any'; readonly column: ColumnUse; readonly array: Value }
  | { readonly op: 'same'; readonly left: ColumnUse; readonly right: ColumnUse }
  | { readonly op: 'null'; readonly column: ColumnUse }
  /** IS NOT DISTINCT FROM. */
  | { readonly op: 'identical'; readonly column: ColumnUse; readonly value: Value }
  | {
      readonly op: 'range'
      readonly column: ColumnUse
      readonly low?: Value
      readonly high?: Value
      readonly inclusive: boolean
    }
  | { readonly op: 'never' }
  | { readonly op: 'unknown' }

/** A predicate that holds for every row in which one of `relations` takes part (not null-extended); absent: always. */
export interface Conjunct {
  readonly predicate: Predicate
  readonly relations?: readonly number[]
}

export interface RelationUse {
  readonly name: string
  readonly schema?: string
  /** The name that columns are qualified with; no name that SQL can write where a join's alias hides it. */
  alias: string
  /** An outer join may put NULLs in its place. */
  nullable: boolean
  /** The table that an INSERT, UPDATE, DELETE or MERGE changes. */
  readonly isTarget: boolean
  /** t(a, b): the columns have other names. */
  readonly renamesColumns: boolean
  /** Byte where its name begins in the text that was parsed, which may be another one of the template. */
  readonly at?: number
  /** ONLY t: without its children. */
  readonly only?: boolean
}

export interface OuterJoin {
  readonly preserved: readonly number[]
  readonly nullable: readonly number[]
}

export interface InsertFacts {
  /** Absent: all columns in catalogue order. */
  readonly columns?: readonly string[]
  /** VALUES; undefined stands for what cannot be computed, 'default' for DEFAULT. */
  readonly rows?: readonly (readonly (Value | 'default' | undefined)[])[]
  /** INSERT … SELECT: the query's level and what it selects; absent when a star or a set operation hides it. */
  readonly source?: Level
  readonly selected?: readonly (Value | ColumnUse | undefined)[]
  /** ON CONFLICT: its arbiter, by columns (undefined for an expression) or by name; neither: any. */
  readonly conflict?: {
    readonly columns?: readonly (string | undefined)[]
    readonly constraint?: string
  }
  /** OVERRIDING USER VALUE: identity columns draw their value whatever is written. */
  readonly overridesUser?: true
}

export interface Level {
  readonly kind: 'select' | 'values' | 'setop' | 'insert' | 'update' | 'delete' | 'merge'
  parent?: Level
  readonly relations: RelationUse[]
  readonly conjuncts: Conjunct[]
  readonly children: Level[]
  readonly outerJoins: OuterJoin[]
  /** USING columns: name → relation whose column it is, or -1 where that cannot be said. */
  readonly merged: Map<string, number>
  /** FROM has subqueries, functions or CTE references beside the tables. */
  hasDerived: boolean
  /** Their names; `*` where one is not known. */
  readonly derived: string[]
  hasFullJoin: boolean
  /** Why answers of several shards cannot simply be put behind each other; absent when they can. */
  notPlain?: string
  insert?: InsertFacts
  /** Columns that UPDATE or ON CONFLICT DO UPDATE assigns, with their value where it is known. */
  assigned?: readonly {
    readonly column: string
    readonly value?: Value
    /** It is given this column's value. */
    readonly from?: ColumnUse
  }[]
  merge?: MergeFacts
  /** RETURNING stands in it. */
  returns?: boolean
}

/** A call with its arguments; undefined stands for what is no value of the statement's own. */
export interface CalledFunction extends FunctionUse {
  readonly args: readonly (Value | undefined)[]
}

export interface FunctionUse {
  readonly schema?: string
  readonly name: string
}

export interface Statement {
  readonly kind: StatementKind
  readonly effects: Effects
  /** Query levels of SELECT, INSERT, UPDATE, DELETE, MERGE, and of what EXPLAIN, COPY (query), DECLARE hold. */
  readonly root?: Level
  /** Of a SELECT that is one, without set operations, and whose clauses can be told apart by their tokens. */
  readonly select?: SelectFacts
  readonly functions: readonly FunctionUse[]
  /** Of a SELECT without tables, and of CALL. */
  readonly calls?: readonly CalledFunction[]
  /** Operators by name, without those that are written with the schema pg_catalog. */
  readonly operators: readonly string[]
  /** Types named in casts and column lists, without those of pg_catalog. */
  readonly typeNames: readonly string[]
  /** Last names of `table.column` and `(row).field`, which may call a function of the row. */
  readonly attributes: readonly string[]
  /** By the text alone; a view or a user's function may still write. */
  readonly isRead: boolean
  /** Mentions now() or CURRENT_TIMESTAMP and their like. */
  readonly usesClock: boolean
  /** First system column named (ctid, xmin, …). */
  readonly systemColumn?: string
  /** FOR UPDATE and the like. */
  readonly locks: boolean
  /** A parameter stands in several places. */
  readonly repeatsParameters: boolean
  /** The effects hold values of literals: other texts of the template need their own facts. */
  readonly dependsOnLiterals: boolean
  /** Of what is neither a query nor about the session. */
  readonly ddl?: DdlFacts
  /** First words, for messages: `create table`. */
  readonly verb: string
}
