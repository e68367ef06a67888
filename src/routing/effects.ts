/** Effects and read-or-write of a statement, once the catalogue has its say: user functions, triggers, rules, policies. */
import type { CatalogRelation } from '../catalog/catalog.js'
import type { Effects } from '../plan/effects.js'
import { isBuiltin } from '../sql/describe-statement.js'
import type { FunctionUse, Level, Statement } from '../sql/statement.js'
import type { RoutingWorld } from './world.js'

/** Draws from a sequence of setup's. */
export const isUniqueId = ({ schema, name }: FunctionUse): boolean =>
  schema === 'pgshard' && name === 'unique_id'

/** A function that may do anything: not PostgreSQL's own, or one of the user's that shares its name. */
export function isForeign(call: FunctionUse, world: RoutingWorld): boolean {
  if (world.cleanFunctions.has(call.name)) return false
  if (isUniqueId(call)) return false
  if (!isBuiltin(call)) return true
  return call.schema !== 'pg_catalog' && (world.catalog?.functionsNamed(call.name).length ?? 0) > 0
}

/** A user's function that the catalogue knows to be immutable: it reads no table. */
export function isHarmlessForeign(call: FunctionUse, world: RoutingWorld): boolean {
  const known = world.catalog?.functionsNamed(call.name) ?? []
  return (
    known.length > 0 && known.every((one) => one.volatility === 'immutable' && !one.isAggregate)
  )
}

/** An operator that runs a user's function which is not immutable. */
export function foreignOperator(
  statement: Statement,
  world: RoutingWorld,
): { readonly name: string } | undefined {
  const operators = world.catalog?.operators ?? []
  if (operators.length === 0) return undefined
  return operators.find(
    ({ name, volatility }) => volatility !== 'immutable' && statement.operators.includes(name),
  )
}

const mayRunUserCode = (relation: CatalogRelation, changed: boolean): boolean =>
  relation.rowSecurity ||
  relation.hasRules ||
  (changed && (relation.hasTriggers || relation.columns.some(hasForeignDefault)))

/** Defaults are read as text: a call that is none of the usual ones counts as the user's. */
const hasForeignDefault = (column: { default?: string }): boolean =>
  column.default !== undefined &&
  [...column.default.matchAll(/([\w.]+)\(/g)].some(
    ([, name]) =>
      name !== 'pgshard.unique_id' && !isBuiltin({ name: name!.replace(/^pg_catalog\./, '') }),
  )

function touchesUserCode(level: Level, world: RoutingWorld): boolean {
  const { catalog } = world
  if (!catalog) return false
  for (const use of level.relations) {
    const relation = findAnywhere(use, world)
    if (relation && mayRunUserCode(relation, use.isTarget)) return true
  }
  return level.children.some((child) => touchesUserCode(child, world))
}

/** The search path is not known here: any relation of that name counts. */
function findAnywhere(
  use: { schema?: string; name: string },
  { catalog }: RoutingWorld,
): CatalogRelation | undefined {
  for (const relation of catalog?.relations ?? []) {
    if (relation.name !== use.name) continue
    if (use.schema === undefined || use.schema === relation.schema) return relation
  }
  return undefined
}

export function effectsOf(statement: Statement, world: RoutingWorld): Effects {
  const { effects } = statement
  if (effects.taints) return effects
  const taints =
    statement.functions.some((call) => isForeign(call, world) && !isHarmlessForeign(call, world)) ||
    foreignOperator(statement, world) !== undefined ||
    (statement.root !== undefined && touchesUserCode(statement.root, world))
  return taints ? { ...effects, taints: true } : effects
}

/** A replica may answer. */
export function readsOnly(statement: Statement, world: RoutingWorld): boolean {
  if (!statement.isRead || statement.functions.some(isUniqueId)) return false
  return (
    foreignOperator(statement, world) === undefined &&
    !statement.functions.some((call) => isForeign(call, world) && !isHarmlessForeign(call, world))
  )
}
