/** A configuration in which two databases have changed names: what clients know as one is served by the servers of the other. Pure. */
import type { LoadedConfig } from '../../config/loaded-config.js'
import { successorOf, type TopologyRow } from '../../topology/epoch.js'

/** Users and rules go by the names that clients say, so they stay. */
export function exchangeDatabases(config: LoadedConfig, a: string, b: string): LoadedConfig {
  const other = (name: string): string => (name === a ? b : name === b ? a : name)
  const swapped = <V>(map: ReadonlyMap<string, V>): ReadonlyMap<string, V> =>
    new Map([...map].map(([name, value]) => [other(name), value]))
  return {
    ...config,
    databases: config.databases.map((one) => ({ ...one, name: other(one.name) })),
    databaseOptions: swapped(config.databaseOptions),
    sharding: swapped(config.sharding),
  }
}

/** The configuration as the epochs say it, whatever its file still says. */
export function followEpochs(
  config: LoadedConfig,
  rows: ReadonlyMap<string, TopologyRow>,
): { config: LoadedConfig; followed: readonly (readonly [string, string])[] } {
  const followed: (readonly [string, string])[] = []
  let result = config
  for (const [name, row] of rows) {
    if (followed.some((pair) => pair.includes(name))) continue
    const successor = successorOf(name, row, rows)
    if (successor === undefined) continue
    result = exchangeDatabases(result, name, successor)
    followed.push([name, successor])
  }
  return { config: result, followed }
}
