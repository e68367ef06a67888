/**
 * What a set of HA groups is: pairs of primary and standby, and the database that holds their state. Plain data.
 * Model: route switching for PL/Proxy by heartbeat (rows X1 to X50 of the requirements).
 */
import { conninfoValues } from '../topology/conninfo.js'

export type HaRole = 'primary' | 'standby'

export interface HaGroup {
  /** `ha_groupid`, from 1. */
  readonly id: number
  readonly name: string
  /** Connection string of each node. */
  readonly primary: string
  readonly standby: string
  readonly heartbeatIntervalMs: number
  /** Age of a heartbeat at which its node counts as failed; larger than the interval. */
  readonly switchAfterMs: number
  /** Run by the shell before a route changes; the route stays when it fails. */
  readonly fencingCommand: string | undefined
  /** The standby is a streaming replica: probed by a read, promoted before the route changes, never switched back by itself. */
  readonly promote: boolean
}

export interface HaPlan {
  /** Connection string of the database with ha_config. */
  readonly state: string
  /** Name that PL/Proxy functions give to CLUSTER. */
  readonly cluster: string
  /** Role of the probers on nodes and state. */
  readonly user: string
  readonly password: string | undefined
  /** Time for a connection and for a probe; also the pause between attempts. */
  readonly connectTimeoutMs: number
  readonly statementTimeout: number
  readonly groups: readonly HaGroup[]
}

/** A node's place in the list of partitions, from 0: those of a group stand side by side, primary first. */
export const hostIdOf = (group: HaGroup, role: HaRole): number =>
  (group.id - 1) * 2 + (role === 'primary' ? 0 : 1)

export interface HaNode {
  readonly hostId: number
  readonly group: HaGroup
  readonly role: HaRole
  readonly conninfo: string
}

/** All nodes in the order of their host ids. */
export const nodesOf = (plan: HaPlan): HaNode[] =>
  plan.groups.flatMap((group) =>
    (['primary', 'standby'] as const).map((role) => ({
      hostId: hostIdOf(group, role),
      group,
      role,
      conninfo: group[role],
    })),
  )

const quoted = (value: string): string =>
  /^[^\s'\\]+$/.test(value) ? value : `'${value.replace(/(['\\])/g, '\\$1')}'`

const first = ['dbname', 'host', 'hostaddr', 'port', 'user', 'password']

/** A connection string in keyword form, in the order that PL/Proxy's readers expect: dbname, host, user, password, the rest. */
export function keywordForm(conninfo: string): string {
  const values = conninfoValues(conninfo)
  const rank = (keyword: string) => first.indexOf(keyword) + 1 || first.length + 1
  return Object.entries(values)
    .sort(([a], [b]) => rank(a) - rank(b))
    .map(([keyword, value]) => `${keyword}=${quoted(value)}`)
    .join(' ')
}

/** Host and port of a node, for people. */
export function nodePlace(conninfo: string): string {
  const values = conninfoValues(conninfo)
  return `${values['host'] ?? values['hostaddr'] ?? ''}:${values['port'] ?? '5432'}`
}

/** Address alone, as `primary_ip` and `standby_ip` hold it. */
export function nodeAddress(conninfo: string): string {
  const values = conninfoValues(conninfo)
  return values['hostaddr'] ?? values['host'] ?? ''
}
