/** What a plugin sees of a statement, its parameters and the cluster: frozen, decoded only when it is looked at. */
import type { BoundParameters, Plan, PlannedStatement, RouteContext } from '../plan/plan.js'
import { listShards } from '../sharding/shard-set.js'
import { isSyntaxError, parseStatements } from '../sql/parse.js'
import type { Level, Statement } from '../sql/statement.js'
import type { PluginInput, PluginParameter, PluginStatement } from './plugin-api.js'

type Facts = Pick<PluginStatement, 'tables' | 'functions'>

const noFacts: Facts = Object.freeze({ tables: Object.freeze([]), functions: Object.freeze([]) })

const known = new WeakMap<Statement, Facts>()

const levelsOf = (level: Level): Level[] => [level, ...level.children.flatMap(levelsOf)]

/** The tables and functions of a template; one frozen object for all its texts. */
export function factsOf(statement: Statement | undefined): Facts {
  if (!statement) return noFacts
  const made = known.get(statement)
  if (made) return made
  const tables = (statement.root ? levelsOf(statement.root) : []).flatMap(({ relations }) =>
    relations.map(({ schema, name, isTarget }) => ({
      ...(schema === undefined ? {} : { schema }),
      name,
      isTarget,
    })),
  )
  const functions = statement.functions.map((call) => ({ ...call }))
  const facts = deepFreeze({ tables, functions })
  known.set(statement, facts)
  return facts
}

export function deepFreeze<T>(value: T): T {
  if (value === null || typeof value !== 'object' || Object.isFrozen(value)) return value
  for (const inner of Object.values(value)) deepFreeze(inner)
  return Object.freeze(value)
}

/** The parse tree is made when it is first read: most plugins look at tables only. */
function statementOf(text: string, planned: PlannedStatement, facts: Facts): PluginStatement {
  let ast: unknown
  let isParsed = false
  return Object.freeze({
    text,
    kind: planned.kind,
    isRead: planned.isRead,
    ...facts,
    get ast(): unknown {
      if (!isParsed) {
        const parsed = parseStatements(text)
        ast = isSyntaxError(parsed) ? undefined : deepFreeze(parsed.statements[0])
        isParsed = true
      }
      return ast
    },
  })
}

function parameterOf(parameters: BoundParameters, index: number): PluginParameter {
  const isNull = parameters.isNull(index)
  const format = parameters.format(index) === 1 ? 'binary' : 'text'
  // Copied now: the buffer is lent to us for the call of `route` only.
  const bytes = isNull
    ? Buffer.alloc(0)
    : Buffer.from(parameters.buffer.subarray(parameters.start(index), parameters.end(index)))
  return Object.freeze({
    isNull,
    format,
    get text(): string | undefined {
      return isNull || format === 'binary' ? undefined : bytes.toString('utf8')
    },
    bytes: () => Uint8Array.from(bytes),
  } as const)
}

const noParameters: readonly PluginParameter[] = Object.freeze([])

function parametersOf(parameters: BoundParameters | undefined): readonly PluginParameter[] {
  if (!parameters || parameters.count === 0) return noParameters
  return Object.freeze(
    Array.from({ length: parameters.count }, (_, index) => parameterOf(parameters, index)),
  )
}

/** What stays the same for all statements of a database. */
export type Surroundings = Pick<PluginInput, 'database' | 'cluster'>

/** One call of a plugin. */
export interface Asked {
  readonly text: string
  readonly planned: PlannedStatement
  readonly facts: Facts
  readonly parameters: BoundParameters | undefined
  readonly context: RouteContext
  readonly own: Plan
}

export function inputOf(asked: Asked, around: Surroundings): PluginInput {
  const { planned, context, own } = asked
  const { shardCount } = around.cluster
  return Object.freeze({
    ...around,
    statement: statementOf(asked.text, planned, asked.facts),
    parameters: parametersOf(asked.parameters),
    session: Object.freeze({
      searchPath: Object.freeze([...context.searchPath]),
      ...context.manual,
    }),
    route: Object.freeze({
      how: own.how,
      shards: Object.freeze(own.how === 'refuse' ? [] : [...listShards(own.target, shardCount)]),
      role: own.role,
      reasons: Object.freeze([...own.reasons]),
    }),
  })
}
