/** EXPLAIN of a statement that several shards work for: routing writes it, session asks each shard. Plain data. */

export interface ExplainProgram {
  /** What the shards are asked to explain, EXPLAIN before it. */
  readonly parts: readonly ExplainPart[]
  readonly format: 'text' | 'json'
  /** `merge`, `gather`, … */
  readonly how: string
  readonly reasons: readonly string[]
  /** What happens behind the shards, one line each: the proxy's merge, the statement that finishes. */
  readonly finish: readonly string[]
}

export interface ExplainPart {
  readonly shard: number
  readonly sql: string
  /** What the part is, where a shard has several: `rows of table "t"`. */
  readonly what?: string
}
