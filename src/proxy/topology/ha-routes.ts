/** A configuration in which each shard that is an HA group has the group's current node as its primary. Pure. */
import type { HaGroupConfig, LoadedConfig } from '../../config/loaded-config.js'
import { nodeAddress } from '../../ha/ha-plan.js'
import { conninfoValues } from '../../topology/conninfo.js'
import type { Host, Shard } from '../../topology/topology.js'

export type HaRoutes = ReadonlyMap<number, 'primary' | 'standby'>

type Node = Pick<Host, 'host' | 'port' | 'database'>

function nodeOf(conninfo: string): Node {
  const values = conninfoValues(conninfo)
  const database = values['dbname'] ?? values['user'] ?? ''
  return { host: nodeAddress(conninfo), port: Number(values['port'] ?? 5432), database }
}

const isSame = (a: Node, b: Node): boolean =>
  a.host === b.host && a.port === b.port && a.database === b.database

/**
 * The node that is not current is not used: without replication between them it has other rows. Only a streaming replica
 * (`promote`) that is listed goes on serving reads while the primary is current.
 */
function routedShard(shard: Shard, group: HaGroupConfig, route: 'primary' | 'standby'): Shard {
  const current = nodeOf(group[route])
  const other = nodeOf(group[route === 'primary' ? 'standby' : 'primary'])
  const ofGroup = shard.hosts.filter((host) => isSame(host, current) || isSame(host, other))
  const model = ofGroup.find((host) => isSame(host, current)) ?? ofGroup[0] ?? shard.hosts[0]
  if (model === undefined) return shard
  const readsToo = group.promote && route === 'primary'
  const rest = shard.hosts.filter((host) => !ofGroup.includes(host) && host.role === 'replica')
  const replicas = readsToo ? ofGroup.filter((host) => isSame(host, other)) : []
  return {
    ...shard,
    hosts: [
      { ...model, ...current, role: 'primary' },
      ...replicas.map((host): Host => ({ ...host, role: 'replica' })),
      ...rest,
    ],
  }
}

/** Groups without a database, and those whose route nobody knows, change nothing. */
export function withHaRoutes(config: LoadedConfig, routes: HaRoutes): LoadedConfig {
  const groups = (config.ha?.groups ?? []).filter(
    ({ id, database }) => database !== undefined && routes.has(id),
  )
  if (groups.length === 0) return config
  const databases = config.databases.map((database) => ({
    ...database,
    shards: database.shards.map((shard) => {
      const group = groups.find(
        (one) => one.database === database.name && one.shard === shard.number,
      )
      return group
        ? routedShard(shard, group, routes.get(group.id) as 'primary' | 'standby')
        : shard
    }),
  }))
  return { ...config, databases }
}
