/**
 * Which statements may be pipelined: SELECTs over plain tables, or views of them, that call nothing but PostgreSQL's own
 * immutable and stable functions (hard-parts §1.1). What is not known makes it no.
 */
import type { Catalog, CatalogRelation } from '../catalog/catalog.js'
import { type HiddenCode, oneServersFunctions } from '../catalog/hidden-code.js'
import type { RouteContext } from '../plan/plan.js'
import { volatileBuiltins } from '../sql/builtin-functions.js'
import type { FunctionUse, Level, RelationUse, Statement } from '../sql/statement.js'
import { isForeign } from './effects.js'
import { type Names, namesOf, sameNames } from './names.js'
import { levelsOf, whyUnclear } from './resolve.js'
import type { RoutingWorld } from './world.js'

/** Types beyond this number are users': reading a parameter of one may run their code. */
const FIRST_USER_OID = 16_384

const storing = new Set(['table', 'partitioned', 'materialized'])

export type IsRepeatable = (context: RouteContext, parameterTypes: readonly number[]) => boolean

const never: IsRepeatable = () => false

/** What does not depend on names is decided at once, the rest once for each search path. */
export function compileRepeatable(statement: Statement, world: RoutingWorld): IsRepeatable {
  const { catalog } = world
  const hidden = catalog?.hiddenCode
  if (!catalog || !hidden || hidden.everywhere) return never
  if (!isPlainRead(statement) || !isCodeKnown(statement, world, hidden)) return never
  const levels = levelsOf(statement.root)
  let names: Names | undefined
  let answer = false
  return (context, parameterTypes) => {
    if (parameterTypes.some((type) => type >= FIRST_USER_OID)) return false
    if (!sameNames(names, context)) {
      names = namesOf(context)
      answer = context.temporary === undefined && readsTables(levels, catalog, hidden, names)
    }
    return answer
  }
}

function isPlainRead(statement: Statement): boolean {
  const { kind, isRead, locks, effects, root } = statement
  if (kind !== 'select' || !isRead || locks || !root) return false
  return !effects.taints && effects.pins.length === 0 && !effects.settings
}

function isCodeKnown(statement: Statement, world: RoutingWorld, hidden: HiddenCode): boolean {
  const { catalog } = world
  return (
    statement.functions.every((call) => isHarmless(call, world)) &&
    !statement.operators.some((name) => hidden.operators.has(name)) &&
    !statement.typeNames.some((name) => hidden.domains.has(name)) &&
    !statement.attributes.some((name) => (catalog?.functionsNamed(name).length ?? 0) > 0)
  )
}

function isHarmless(call: FunctionUse, world: RoutingWorld): boolean {
  if (world.cleanFunctions.has(call.name)) return true
  return (
    !isForeign(call, world) &&
    !volatileBuiltins.has(call.name) &&
    !oneServersFunctions.test(call.name)
  )
}

const readsTables = (
  levels: readonly Level[],
  catalog: Catalog,
  hidden: HiddenCode,
  names: Names,
): boolean =>
  levels.every((level) => level.relations.every((use) => isTable(use, catalog, hidden, names)))

function isTable(use: RelationUse, catalog: Catalog, hidden: HiddenCode, names: Names): boolean {
  // found before every other schema, whatever the user has of the same name
  if (use.name.startsWith('pg_')) return false
  if (use.schema === undefined && whyUnclear(use.name, catalog, names) !== undefined) return false
  const relation = catalog.find(use.schema, use.name, names.searchPath)
  return relation !== undefined && isTableOrView(relation, catalog, hidden, new Set())
}

function isTableOrView(
  relation: CatalogRelation,
  catalog: Catalog,
  hidden: HiddenCode,
  seen: Set<number>,
): boolean {
  if (seen.has(relation.oid)) return true
  seen.add(relation.oid)
  if (hidden.relations.has(relation.oid) || relation.isTemporary) return false
  if (storing.has(relation.kind)) return true
  if (relation.kind !== 'view') return false
  return relation.reads.every((oid) => {
    const beneath = catalog.byOid(oid)
    return beneath !== undefined && isTableOrView(beneath, catalog, hidden, seen)
  })
}
