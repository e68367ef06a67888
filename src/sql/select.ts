/**
 * The shape of a SELECT of one level, as far as rows of several shards are merged by it: output columns, DISTINCT,
 * GROUP BY, ORDER BY, LIMIT, each with the tokens where it stands.
 */
import type { ColumnUse, Value } from './value.js'

/** Numbers of tokens, comments not counted, from the statement's first: [first, last). */
export interface Span {
  readonly first: number
  readonly last: number
}

/** What an expression is made of, as far as its type can be told from the text. */
export type Expression =
  | { readonly kind: 'column'; readonly use: ColumnUse }
  | { readonly kind: 'constant'; readonly literal: 'integer' | 'number' | 'string' | 'boolean' }
  /** A NULL or a parameter: its type is that of its surroundings. */
  | { readonly kind: 'open' }
  | { readonly kind: 'cast'; readonly type: string; readonly arg: Expression }
  | { readonly kind: 'collate'; readonly collation: string; readonly arg: Expression }
  | { readonly kind: 'call'; readonly name: string; readonly args: readonly Expression[] }
  | { readonly kind: 'operator'; readonly name: string; readonly args: readonly Expression[] }
  /** CASE, COALESCE, GREATEST, LEAST, NULLIF: one of these is the value. */
  | { readonly kind: 'choice'; readonly args: readonly Expression[] }
  /** Comparisons, AND, OR, NOT, IS …. */
  | { readonly kind: 'boolean' }
  | { readonly kind: 'other' }

/** What stands in an expression. */
export interface Contents {
  /** Literals: two texts of one template have others, so that equal trees say nothing of equal values. */
  readonly hasLiterals: boolean
  readonly hasAggregate: boolean
  readonly hasWindow: boolean
  readonly hasSubquery: boolean
  readonly hasColumns: boolean
}

export interface AggregateFacts {
  readonly name: string
  /** Absent with count(*). */
  readonly argument?: Expression
  /** Tokens of what stands in its brackets, and of FILTER (…), which may be none. */
  readonly inside: Span
  readonly tail: Span
}

export interface TargetFacts {
  /** Tokens of the expression, without the alias. */
  readonly span: Span
  /** Alias, or the name that PostgreSQL gives; undefined where that is not known. */
  readonly name: string | undefined
  /** `*`, or `table.*` with the table's name. */
  readonly star?: { readonly table?: string }
  readonly item: ItemFacts
  /** The whole column is one aggregate of one argument at most, without DISTINCT and ORDER BY. */
  readonly aggregate?: AggregateFacts
}

/** An expression that may stand for an output column. */
export interface ItemFacts {
  readonly span: Span
  readonly expression: Expression
  readonly contents: Contents
  /** Equal trees have equal keys. */
  readonly key: string
  /** Slot of the integer literal that is all of it: the number of an output column. */
  readonly ordinal?: number
  /** The name that is all of it: that of an output column comes first. */
  readonly bareName?: string
}

export interface SortFacts extends ItemFacts {
  readonly descending: boolean
  readonly nullsFirst: boolean
}

/** 'unknown' where the value cannot be told; 'one' with FETCH FIRST ROW. */
export type LimitValue = Value | 'unknown' | 'one'

export interface SelectFacts {
  readonly targets: readonly TargetFacts[]
  readonly distinct?: 'all' | readonly ItemFacts[]
  readonly group?: readonly ItemFacts[]
  readonly sort: readonly SortFacts[]
  readonly limitSpan?: Span
  /** Token behind the last output column. */
  readonly targetsEnd: number
  /** ORDER BY with all its keys. */
  readonly sortSpan?: Span
  /** Before this token ORDER BY may be put, or its last key be followed by others. */
  readonly sortEnd: number
  /** Tokens of the statement. */
  readonly count: number
  readonly limit?: LimitValue
  readonly offset?: LimitValue
  readonly withTies: boolean
  readonly hasAggregate: boolean
  readonly hasHaving: boolean
  /** PARTITION BY of each window function; undefined where it is named, or there is none. */
  readonly partitions: readonly (readonly ItemFacts[] | undefined)[]
}
