/**
 * The treaty between routing, which writes it, and session and executor, which obey it; `route` prints it.
 * Plain data, except `PlannedStatement.route`, which turns parameters into the data.
 */
import type { ShardSet } from '../sharding/shard-set.js'
import type { Effects, StatementKind } from './effects.js'
import type { ExplainProgram } from './explain-program.js'
import type { GatherProgram } from './gather-program.js'
import type { MergeProgram } from './merge-program.js'
import type { MoveProgram } from './move-program.js'
import type { SelectInsertProgram } from './select-insert-program.js'
import type { EverywhereProgram, SplitProgram } from './split-program.js'

export type PlanHow =
  /** One shard answers; the frames are forwarded as they are. */
  | 'relay'
  /** Several shards answer, and the answer is their concatenation; of a write, the counts of its tags are added. */
  | 'concatenate'
  /** Several shards answer a rewritten text in order or in groups, and the proxy merges: `merge` says how. */
  | 'merge'
  /** Rows of several shards are copied to one PostgreSQL, which finishes the statement: `gather` says how. */
  | 'gather'
  /** A write whose rows go to different shards, each with a text of its own: `split` says which, `move` how rows change shards, `selected` what is read first. */
  | 'split'
  /** Every shard runs the same statement and gives the same answer (DDL, TRUNCATE, writes of reference tables). */
  | 'everywhere'
  /** COPY FROM STDIN of a sharded or reference table: rows go through the splitter. */
  | 'copy'
  /** EXPLAIN of a statement that several shards work for: `explain` says what each is asked. */
  | 'explain'
  /** Cannot be answered rightly: `error` says why. */
  | 'refuse'

export interface Plan {
  readonly how: PlanHow
  readonly target: ShardSet
  /** With relay: every shard gives the same answer (reference tables, no table at all), so the session picks one. */
  readonly anyShard?: boolean
  /** `any`: a read that a replica may answer. */
  readonly role: 'primary' | 'any'
  /** One sentence each, why the plan is as it is, for `pgshard route`. */
  readonly reasons: readonly string[]
  /** Why no hint may send it to one shard: rows would lie where nobody looks for them. */
  readonly notOne?: string
  readonly merge?: MergeProgram
  readonly gather?: GatherProgram
  readonly split?: SplitProgram
  readonly move?: MoveProgram
  readonly selected?: SelectInsertProgram
  readonly explain?: ExplainProgram
  readonly everywhere?: EverywhereProgram
  /** With how = refuse. */
  readonly error?: {
    readonly sqlstate: string
    readonly code: string
    readonly message: string
    readonly hint?: string
  }
}

/** Parameters of a Bind, lent for the call. Formats: 0 text, 1 binary. */
export interface BoundParameters {
  readonly count: number
  readonly buffer: Buffer
  isNull(index: number): boolean
  format(index: number): 0 | 1
  start(index: number): number
  end(index: number): number
}

/** What was observed of the statements of one template; the pipeline writes it. */
export interface ClassFigures {
  /** 0: never seen. */
  runs: number
  /** Runs on a server that was at work already: only these tell how long it takes by itself. */
  hotRuns: number
  /** Running means. */
  meanMs: number
  /** What one costs a server that is at work: near the lower end of what was seen, where nothing else is counted. */
  typicalMs: number
  replyBytes: number
  /** What is shown to people of all statements of its text; whoever keeps that book writes it. */
  seen?: SeenFigures | undefined
}

/** Of all statements of one text without literals. */
export interface SeenFigures {
  count: number
  errors: number
  totalMs: number
  maxMs: number
  shards: number
  classes: number
  isKept: boolean
}

/** What the session knows of itself when it asks for a route. */
export interface RouteContext {
  /** From SET [LOCAL] pgshard.* / pgdog.* and startup parameters; comments are found in the text and win. */
  readonly manual?: {
    readonly shard?: number
    readonly shardingKey?: string
    readonly role?: 'primary' | 'replica'
  }
  readonly searchPath: readonly string[]
  /** Names of the session's temporary relations → the shard on which each stands; absent: it has none. */
  readonly temporary?: ReadonlyMap<string, number>
  /** The shard of a cursor or portal of the session; absent: it has none. */
  readonly cursors?: { shardOf(name: string): number | undefined }
  /** Type OIDs that the client gave in Parse; 0 or absent is unknown. */
  readonly parameterTypes?: readonly number[]
}

/** Knows other texts of a statement by their bytes. */
export interface TextMatcher {
  /** True only when buffer[start, end) is the whole text with other literals, so that all but the route holds for it too. */
  matches(buffer: Buffer, start: number, end: number): boolean
}

/** One statement of a query string. Shared between clients: immutable, cached by text. */
export interface PlannedStatement {
  readonly kind: StatementKind
  /** Character offsets in the query string, without the semicolon. */
  readonly start: number
  readonly end: number
  /** No writes, locks or volatile functions known: a replica may answer. */
  readonly isRead: boolean
  readonly effects: Effects
  /** A comment of the statement says so. */
  readonly hintedRole?: 'primary' | 'replica'
  /** Of its class: all texts of its template. Absent: never pipelined. */
  readonly figures?: ClassFigures
  /** Its text without literals and comments. Absent: it was not read. */
  shape?(): string
  /** Absent when it is not the only statement of its text, or when its literals decide what it means. */
  readonly pattern?: TextMatcher | undefined
  /**
   * A read that changes nothing, waits for nobody by its own will and gives the same on any server of the shard, so that
   * it may stand behind others' on one connection and be run twice (hard-parts §1.1). Absent: no.
   */
  mayPipeline?(context: RouteContext, parameterTypes: readonly number[]): boolean
  /** The trace that a comment of its text names. */
  trace?(): { readonly traceId: string; readonly spanId: string } | undefined
  /** `parameters` is absent for simple queries and for Describe without Bind (then `$n` is unknown). */
  route(parameters: BoundParameters | undefined, context: RouteContext): Plan
}

/** A whole query string. No statement: an empty query. */
export interface PlannedQuery {
  readonly text: string
  readonly statements: readonly PlannedStatement[]
  /** The parser's own error, when it rejects the text: relay to one shard for PostgreSQL's wording. */
  readonly syntaxError?: { readonly message: string; readonly position: number }
}

export interface KeptPlan {
  readonly text: string
  readonly hits: number
  readonly direct: number
  readonly several: number
}

/** Reads and routes statements for one database. Made by routing/, used by session/. */
export interface QueryPlanner {
  readonly shardCount: number
  /** Another number: plans kept from before are void, because the schema or the sharding changed. Absent: never. */
  readonly generation?: number
  /** False while a change of the schema is being read: `mayPipeline` may speak of what is no more. */
  readonly isCurrent?: boolean
  /** Templates whose plans are kept, and how often each was asked for. Absent: nothing is kept. */
  kept?(): Iterable<KeptPlan>
  /** Cached. Never throws for bad SQL: see `syntaxError`. */
  plan(sql: string): PlannedQuery
}
