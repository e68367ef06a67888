/** [[function_routes]]: functions that run on a shard, on the shard of an HA group, or where a hash of an argument says. */

import { present } from '../../base/present.js'
import type { KeyType } from '../../datum/key-type.js'
import type { DatabaseTopology } from '../../topology/topology.js'
import { type Entry, withDefaults } from '../keys/check-section.js'
import { functionRouteKeys } from '../keys/config-keys-sections.js'
import type { FunctionRouteConfig, HaConfig } from '../loaded-config.js'
import type { Problems } from '../problems.js'

interface Known {
  readonly databases: readonly DatabaseTopology[]
  readonly ha: HaConfig | undefined
}

interface Compiled {
  readonly functionRoutes: readonly FunctionRouteConfig[]
  /** The groups with the functions that they run. */
  readonly ha: HaConfig | undefined
}

type GroupRoute = HaConfig['routes'][number]

export function compileFunctionRoutes(
  entries: readonly Entry[],
  known: Known,
  problems: Problems,
): Compiled {
  const functionRoutes: FunctionRouteConfig[] = []
  const routes: GroupRoute[] = []
  const seen = new Set<string>()
  for (const entry of entries) {
    const { database, function: name, ...ways } = withDefaults(functionRouteKeys, entry.values)
    if (database === undefined || name === undefined) continue
    if (seen.has(`${database} ${name}`))
      problems.error(entry.placeOf('function'), `function "${name}" is routed twice`)
    seen.add(`${database} ${name}`)
    const found = compileRoute({ database, name, ...ways }, entry, known, problems)
    if (found?.own) functionRoutes.push(found.own)
    if (found?.ofGroup) routes.push(found.ofGroup)
  }
  return { functionRoutes, ha: known.ha && { ...known.ha, routes } }
}

interface Written {
  readonly database: string
  readonly name: string
  readonly shard: number | undefined
  readonly group: string | undefined
  readonly hashArgument: number | undefined
  readonly hashType: KeyType
}

function compileRoute(
  { database: databaseName, name, shard, group, hashArgument, hashType }: Written,
  entry: Entry,
  known: Known,
  problems: Problems,
): { own?: FunctionRouteConfig; ofGroup?: GroupRoute } | undefined {
  const database = known.databases.find((one) => one.name === databaseName)
  if (database === undefined) {
    problems.error(entry.placeOf('database'), `there is no database "${databaseName}"`)
    return undefined
  }
  if ([shard, group, hashArgument].filter((way) => way !== undefined).length !== 1) {
    problems.error(
      entry.placeOf('function'),
      `function "${name}" needs exactly one of shard, group and hash_argument`,
    )
    return undefined
  }
  if (group !== undefined)
    return groupRoute({ database, name, group, hashType }, entry, known, problems)
  if (shard !== undefined && database.shards[shard] === undefined)
    problems.error(entry.placeOf('shard'), `database "${databaseName}" has no shard ${shard}`)
  const own = present({ database: databaseName, function: name, shard, hashArgument, hashType })
  return { own }
}

/** A group without a database is for PL/Proxy nodes alone: serve has no shard that it is. */
function groupRoute(
  route: {
    readonly database: DatabaseTopology
    readonly name: string
    readonly group: string
    readonly hashType: KeyType
  },
  entry: Entry,
  known: Known,
  problems: Problems,
): { own?: FunctionRouteConfig; ofGroup?: GroupRoute } | undefined {
  const { database, name, hashType } = route
  const group = known.ha?.groups.find((one) => one.name === route.group)
  if (group === undefined) {
    problems.error(entry.placeOf('group'), `there is no HA group "${route.group}"`)
    return undefined
  }
  const ofGroup = { functionName: name, groupId: group.id }
  if (group.database === undefined) return { ofGroup }
  if (group.database !== database.name)
    problems.error(
      entry.placeOf('group'),
      `HA group "${group.name}" belongs to database "${group.database}", not "${database.name}"`,
    )
  return { ofGroup, own: { database: database.name, function: name, shard: group.shard, hashType } }
}
