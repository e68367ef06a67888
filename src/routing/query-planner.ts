/**
 * Statements → plans for one database: the door of this room. Texts without literals are kept whole; the others share
 * their template's facts and route, and bring only the places of their literals. Pure: no server is asked.
 */
import type { Catalog } from '../catalog/catalog.js'
import { isEngineError } from '../errors/engine-error.js'
import type { Effects, StatementKind } from '../plan/effects.js'
import type {
  BoundParameters,
  ClassFigures,
  KeptPlan,
  Plan,
  PlannedQuery,
  PlannedStatement,
  QueryPlanner,
  RouteContext,
} from '../plan/plan.js'
import { makeShardMap } from '../sharding/shard-map.js'
import type { ShardingConfig } from '../sharding/sharded-table.js'
import { loadParser } from '../sql/parse.js'
import { QueryReader, type ReadStatement, TwoGenerations } from '../sql/read-query.js'
import type { Slots } from '../sql/template.js'
import { TextPattern } from '../sql/text-pattern.js'
import { type TraceContext, traceContextOf } from '../sql/trace-context.js'
import { compileStatement, type RouteOf } from './compile-statement.js'
import { effectsOf, readsOnly } from './effects.js'
import type { FunctionRoute } from './function-route.js'
import type { Run } from './key-value.js'
import { refuse } from './plans.js'
import { shapeOf } from './redact.js'
import { compileRepeatable, type IsRepeatable } from './repeatable.js'
import type { RoutingWorld } from './world.js'

export interface QueryPlannerOptions {
  readonly sharding: ShardingConfig
  /** Absent: tables are known by the configuration alone. */
  readonly catalog?: Catalog | undefined
  /** User functions that leave nothing behind and only read (`assume_clean_functions`). */
  readonly assumeCleanFunctions?: readonly string[]
  /** Statements that need rows of several shards in one place may be finished on one server (`cross_shard_gather`). */
  readonly gathers?: boolean
  /** Functions that such a statement may call beyond PostgreSQL's own (`gather_functions`). */
  readonly gatherFunctions?: readonly string[]
  /** Functions that have a place of their own (`[[function_routes]]`). */
  readonly functionRoutes?: readonly FunctionRoute[]
  /** EXPLAIN of one shard shows its route too (`expanded_explain`). */
  readonly expandedExplain?: boolean
  /** standard_conforming_strings of the clients; another planner serves those that turned it off. */
  readonly standardConformingStrings?: boolean
  /** How many templates and how many texts are kept, each in two generations. */
  readonly cacheSize?: number
}

/** What is worked out once a template. */
interface TemplateRoute {
  readonly kind: StatementKind
  readonly isRead: boolean
  readonly effects: Effects
  readonly route: RouteOf
  readonly hintedRole: 'primary' | 'replica' | undefined
  readonly figures: ClassFigures
  readonly isRepeatable: IsRepeatable
  /** How often it was asked for, and what became of it. */
  readonly counts: { hits: number; direct: number; several: number }
  /** Of the text that was asked first; undefined: not asked yet. */
  pattern: TextPattern | null | undefined
}

/** Where literals stood, as sql/template.ts marks it. */
const SLOT_MARKS = /\0[a-z]/g

class RoutedStatement implements PlannedStatement, Run {
  readonly kind: StatementKind
  readonly start: number
  readonly end: number
  readonly isRead: boolean
  readonly effects: Effects
  declare readonly hintedRole?: 'primary' | 'replica'
  readonly figures: ClassFigures
  readonly mayPipeline: IsRepeatable
  readonly sql: string
  readonly slots: Slots
  readonly standard: boolean
  parameters: BoundParameters | undefined
  context: RouteContext = { searchPath: [] }
  readonly #template: TemplateRoute
  readonly #mayHavePattern: boolean

  constructor(
    sql: string,
    read: ReadStatement,
    template: TemplateRoute,
    { standard, isAlone }: { readonly standard: boolean; readonly isAlone: boolean },
  ) {
    this.kind = template.kind
    this.start = read.start
    this.end = read.end
    this.isRead = template.isRead
    this.effects = template.effects
    if (template.hintedRole) this.hintedRole = template.hintedRole
    this.figures = template.figures
    this.mayPipeline = template.isRepeatable
    this.sql = sql
    this.slots = read.slots
    this.standard = standard
    this.#template = template
    this.#mayHavePattern = isAlone && !read.template.statement.dependsOnLiterals
  }

  shape(): string {
    return shapeOf(this.sql.slice(this.start, this.end))
  }

  trace(): TraceContext | undefined {
    return traceContextOf(this.sql)
  }

  get pattern(): TextPattern | undefined {
    if (!this.#mayHavePattern) return undefined
    const template = this.#template
    if (template.pattern === undefined)
      template.pattern = TextPattern.of(this.sql, this.slots) ?? null
    return template.pattern ?? undefined
  }

  counted(): void {
    this.#template.counts.hits++
  }

  /** Parameters are lent for the call: they are let go of before it returns. */
  route(parameters: BoundParameters | undefined, context: RouteContext): Plan {
    this.parameters = parameters
    this.context = context
    const plan = this.#template.route(this)
    this.parameters = undefined
    const { counts } = this.#template
    if (plan.how === 'relay') counts.direct++
    else counts.several++
    return plan
  }
}

class CachingPlanner implements QueryPlanner {
  readonly shardCount: number
  readonly #world: RoutingWorld
  readonly #standard: boolean
  readonly #reader: QueryReader
  readonly #texts: TwoGenerations<PlannedQuery>

  constructor(options: QueryPlannerOptions) {
    this.shardCount = options.sharding.shardCount
    this.#standard = options.standardConformingStrings ?? true
    this.#world = {
      map: makeShardMap(options.sharding),
      catalog: options.catalog,
      cleanFunctions: new Set(options.assumeCleanFunctions ?? []),
      planner: this,
      expandsExplain: options.expandedExplain ?? false,
      ...(options.functionRoutes ? { functionRoutes: options.functionRoutes } : {}),
      ...((options.gathers ?? true)
        ? { gather: { functions: new Set(options.gatherFunctions ?? []) } }
        : {}),
    }
    const size = options.cacheSize ?? 5000
    this.#reader = new QueryReader({ standard: this.#standard, templates: size })
    this.#texts = new TwoGenerations(size)
  }

  plan(sql: string): PlannedQuery {
    const known = this.#texts.get(sql)
    if (known) return counted(known)
    const query = this.#read(sql)
    // A text with literals comes once; keeping it would only push others out.
    if (sql.length <= 8192 && !hasLiterals(query)) this.#texts.set(sql, query)
    return query
  }

  *kept(): Iterable<KeptPlan> {
    for (const [text, { worked }] of this.#reader.kept()) {
      const counts = (worked as TemplateRoute | undefined)?.counts
      if (!counts) continue
      // one shard is not asked for: its statements are not routed
      const direct = this.shardCount === 1 ? counts.hits : counts.direct
      const shown = text.replace(SLOT_MARKS, '?')
      yield { text: shown, hits: counts.hits, direct, several: counts.several }
    }
  }

  #read(sql: string): PlannedQuery {
    try {
      const { statements, syntaxError } = this.#reader.read(sql)
      const planned = statements.map((read) => this.#statement(sql, read, statements.length === 1))
      return { text: sql, statements: planned, ...(syntaxError ? { syntaxError } : {}) }
    } catch (error) {
      if (!isEngineError(error)) throw error
      return { text: sql, statements: [this.#unread(sql, refuse(error))] }
    }
  }

  #statement(sql: string, read: ReadStatement, isAlone: boolean): PlannedStatement {
    const shared = read.template
    let template = shared.worked as TemplateRoute | undefined
    if (!template) {
      const { statement, hints } = shared
      template = {
        kind: statement.kind,
        isRead: readsOnly(statement, this.#world),
        effects: effectsOf(statement, this.#world),
        hintedRole: hints?.role,
        route: compileStatement(statement, hints, this.#world),
        figures: {
          ...{ runs: 0, hotRuns: 0, meanMs: 0, typicalMs: 0, replyBytes: 0 },
          seen: undefined,
        },
        isRepeatable: compileRepeatable(statement, this.#world),
        counts: { hits: 0, direct: 0, several: 0 },
        pattern: undefined,
      }
      shared.worked = template
    }
    template.counts.hits++
    return new RoutedStatement(sql, read, template, { standard: this.#standard, isAlone })
  }

  /** Too long or too deep to be read: one shard may run it all the same, as something that may have done anything. */
  #unread(sql: string, refusal: Plan): PlannedStatement {
    const relay: Plan = { ...refusal, how: 'relay', target: { kind: 'some', shards: [0] } }
    const { error: _, ...alone } = relay
    const plan = this.shardCount === 1 ? alone : refusal
    return {
      kind: 'utility',
      start: 0,
      end: sql.length,
      isRead: false,
      effects: { pins: [], taints: true, changesSchema: false },
      route: () => plan,
    }
  }
}

function counted(query: PlannedQuery): PlannedQuery {
  for (const statement of query.statements)
    if (statement instanceof RoutedStatement) statement.counted()
  return query
}

function hasLiterals(query: PlannedQuery): boolean {
  return query.statements.some(
    (statement) =>
      statement instanceof RoutedStatement &&
      statement.slots.starts.length > 0 &&
      query.statements.length === 1,
  )
}

/** `loadParser` of sql/parse.ts must have resolved before the first `plan`. */
export function makeQueryPlanner(options: QueryPlannerOptions): QueryPlanner {
  return new CachingPlanner(options)
}

/** Loads the parser, then makes the planner. */
export async function openQueryPlanner(options: QueryPlannerOptions): Promise<QueryPlanner> {
  await loadParser()
  return makeQueryPlanner(options)
}
