/** A planner that asks the plugins about each statement, behind the statement's own route and the hints of its comments. */
import { engineError } from '../errors/engine-error.js'
import type { StatementKind } from '../plan/effects.js'
import type {
  BoundParameters,
  Plan,
  PlannedQuery,
  PlannedStatement,
  QueryPlanner,
  RouteContext,
} from '../plan/plan.js'
import { obeyHint } from '../routing/manual.js'
import { planOrRefuse } from '../routing/plans.js'
import { QueryReader } from '../sql/read-query.js'
import type { PluginHost, Wish } from './plugin-host.js'
import { factsOf, inputOf, type Surroundings } from './plugin-input.js'

export interface PluginPlannerOptions {
  readonly planner: QueryPlanner
  readonly host: Pick<PluginHost, 'ask'>
  readonly around: Surroundings
  readonly standardConformingStrings?: boolean
}

/** The session itself, or all servers, see to the other kinds. */
const asked: ReadonlySet<StatementKind> = new Set<StatementKind>([
  'select',
  'insert',
  'update',
  'delete',
  'merge',
  'truncate',
  'lock',
  'call',
  'do',
  'ddl',
  'explain',
  'utility',
])

/** The plan under a plugin's wish. A shard that the statement contradicts is an error, as with a hint. */
function follow(own: Plan, wish: Wish): Plan {
  const there = wish.shard === undefined ? own : obeyHint(own, wish.shard, own.role)
  if (there.error?.code === 'ROUTE_HINT_CONTRADICTS') {
    const needed = own.target.kind === 'some' ? own.target.shards.join(', ') : 'all'
    throw engineError('PLUGIN_CONTRADICTS', { plugin: wish.plugin, shard: wish.shard!, needed })
  }
  const role = wish.role === undefined ? there.role : wish.role === 'primary' ? 'primary' : 'any'
  if (there === own && role === own.role) return own
  return { ...there, role, reasons: [...there.reasons, `plugin ${wish.plugin} says so`] }
}

class PluginPlanner implements QueryPlanner {
  readonly #options: PluginPlannerOptions
  readonly #reader: QueryReader
  readonly #wrapped = new WeakMap<PlannedQuery, PlannedQuery>()

  constructor(options: PluginPlannerOptions) {
    this.#options = options
    const standard = options.standardConformingStrings ?? true
    this.#reader = new QueryReader({ standard, templates: 500 })
  }

  get shardCount(): number {
    return this.#options.planner.shardCount
  }

  plan(sql: string): PlannedQuery {
    const query = this.#options.planner.plan(sql)
    if (!query.statements.some(({ kind }) => asked.has(kind))) return query
    const known = this.#wrapped.get(query)
    if (known) return known
    const statements = query.statements.map((statement, i) =>
      asked.has(statement.kind) ? this.#wrap(sql, statement, i) : statement,
    )
    const wrapped = { ...query, statements }
    this.#wrapped.set(query, wrapped)
    return wrapped
  }

  #wrap(sql: string, inner: PlannedStatement, index: number): PlannedStatement {
    const { host, around } = this.#options
    const text = sql.slice(inner.start, inner.end)
    let facts: ReturnType<typeof factsOf> | undefined
    const factsNow = () => {
      facts ??= factsOf(this.#factsAt(sql, index))
      return facts
    }
    const route = (parameters: BoundParameters | undefined, context: RouteContext): Plan => {
      const own = inner.route(parameters, context)
      if (own.how === 'copy') return own
      const given = { text, planned: inner, facts: factsNow(), parameters, context, own }
      const wish = host.ask(inputOf(given, around))
      return wish ? planOrRefuse(() => follow(own, wish)) : own
    }
    const mayPipeline = inner.mayPipeline?.bind(inner)
    return {
      kind: inner.kind,
      start: inner.start,
      end: inner.end,
      isRead: inner.isRead,
      effects: inner.effects,
      ...(inner.hintedRole ? { hintedRole: inner.hintedRole } : {}),
      ...(inner.figures ? { figures: inner.figures } : {}),
      ...(mayPipeline ? { mayPipeline } : {}),
      route,
    }
  }

  #factsAt(sql: string, index: number) {
    try {
      return this.#reader.read(sql).statements[index]?.template.statement
    } catch {
      // Too long to be read: the plugin sees its text.
      return undefined
    }
  }
}

export function makePluginPlanner(options: PluginPlannerOptions): QueryPlanner {
  return new PluginPlanner(options)
}
