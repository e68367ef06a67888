/** [ha] and [[ha_groups]]: pairs of primary and standby whose route is switched by heartbeat. */
import { toEngineError } from '../../errors/engine-error.js'
import { conninfoValues } from '../../topology/conninfo.js'
import type { DatabaseTopology } from '../../topology/topology.js'
import { type Entry, withDefaults } from '../keys/check-section.js'
import { haGroupKeys, haKeys } from '../keys/config-keys-sections.js'
import type { HaConfig, HaGroupConfig } from '../loaded-config.js'
import type { Problems } from '../problems.js'

/** The groups with their ids; undefined when there are none. */
export function compileHa(
  entriesOf: (section: string) => readonly Entry[],
  databases: readonly DatabaseTopology[],
  problems: Problems,
): HaConfig | undefined {
  const entries = entriesOf('ha_groups')
  const own = entriesOf('ha').at(-1)
  if (entries.length === 0) return undefined
  const { state, ...rest } = withDefaults(haKeys, own?.values ?? {})
  if (state === undefined) {
    const place = (own ?? (entries[0] as Entry)).placeOf('state')
    problems.error(place, 'ha_groups need [ha] state: the database that holds their state')
    return undefined
  }
  const groups = entries.flatMap((entry, index) => {
    const group = { id: index + 1, ...withDefaults(haGroupKeys, entry.values) }
    const { name, primary, standby } = group
    if (name === undefined || primary === undefined || standby === undefined) return []
    return [checked({ ...group, name, primary, standby }, entry, databases, problems)]
  })
  const names = groups.map(({ name }) => name)
  for (const [index, name] of names.entries())
    if (names.indexOf(name) !== index)
      problems.error(entries[index]?.placeOf('name'), `HA group "${name}" is there twice`)
  return { state, ...rest, groups, routes: [] }
}

function checked(
  group: HaGroupConfig,
  entry: Entry,
  databases: readonly DatabaseTopology[],
  problems: Problems,
): HaGroupConfig {
  for (const key of ['primary', 'standby'] as const) {
    const problem = nodeProblem(group[key])
    if (problem !== undefined) problems.error(entry.placeOf(key), `${key}: ${problem}`)
  }
  if (group.switchAfterMs <= group.heartbeatIntervalMs)
    problems.error(
      entry.placeOf('switch_after'),
      `switch_after (${group.switchAfterMs} ms) must be larger than heartbeat_interval (${group.heartbeatIntervalMs} ms), or each group switches between two heartbeats`,
    )
  if (group.database === undefined) return group
  const database = databases.find(({ name }) => name === group.database)
  if (database === undefined)
    problems.error(entry.placeOf('database'), `there is no database "${group.database}"`)
  else if (database.shards[group.shard] === undefined)
    problems.error(
      entry.placeOf('shard'),
      `database "${group.database}" has no shard ${group.shard}`,
    )
  return group
}

/** A node is one server: several hosts in one string would hide which of them answered. */
function nodeProblem(conninfo: string): string | undefined {
  try {
    const values = conninfoValues(conninfo)
    const host = values['hostaddr'] ?? values['host']
    if (host === undefined || host === '') return 'names no host'
    return host.includes(',') ? 'names several hosts; a node is one server' : undefined
  } catch (error) {
    return toEngineError(error).message
  }
}
