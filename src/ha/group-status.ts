/** `pgshard ha status` and `ha switch`: what the state database says of each group, and a route changed by hand. */
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { type HaGroup, type HaPlan, type HaRole, nodePlace } from './ha-plan.js'
import { readGroups, type StoredGroup } from './ha-store.js'
import { openLinks } from './links.js'
import { switchGroup } from './switch-group.js'
import { type Decision, decide } from './switch-rules.js'

export interface NodeStatus {
  readonly place: string
  readonly hostId: number
  /** Milliseconds since the last heartbeat. */
  readonly ageMs: number | undefined
  readonly healthy: boolean
}

export interface GroupStatus {
  readonly id: number
  readonly name: string
  readonly current: HaRole
  readonly primary: NodeStatus
  readonly standby: NodeStatus
  /** What a watcher would do now. */
  readonly decision: Decision
}

/** @throws HA_NO_STATE when a group has no row; connection errors */
export async function groupStatus(plan: HaPlan, clock: Clock): Promise<GroupStatus[]> {
  const state = await openLinks(plan, clock)(undefined)
  try {
    const stored = await readGroups(state)
    return plan.groups.map((group) => statusOf(group, knownRow(group, stored)))
  } finally {
    await state.close()
  }
}

function knownRow(group: HaGroup, stored: readonly StoredGroup[]): StoredGroup {
  const row = stored.find(({ id }) => id === group.id)
  if (row === undefined) throw engineError('HA_NO_STATE', { reason: `no row for ${group.name}` })
  return row
}

function statusOf(group: HaGroup, row: StoredGroup): GroupStatus {
  const node = (role: HaRole): NodeStatus => {
    const ageMs = role === 'primary' ? row.primaryAgeMs : row.standbyAgeMs
    return {
      place: nodePlace(group[role]),
      hostId: role === 'primary' ? row.primaryHostId : row.standbyHostId,
      ageMs,
      healthy: ageMs !== undefined && ageMs < group.switchAfterMs,
    }
  }
  return {
    id: group.id,
    name: group.name,
    current: row.current,
    primary: node('primary'),
    standby: node('standby'),
    decision: decide(row, group),
  }
}

/**
 * Changes the route of a group by hand.
 * @returns whether anything changed: false when it stands there already
 * @throws HA_NO_GROUP, HA_TARGET_STALE, HA_FENCING, HA_BUSY, HA_SWITCHED_MEANWHILE
 */
export async function switchByHand(
  plan: HaPlan,
  options: {
    readonly name: string
    readonly to: HaRole
    readonly force: boolean
    readonly noFencing: boolean
    readonly clock: Clock
  },
): Promise<boolean> {
  const { name, to, clock } = options
  const group = plan.groups.find((one) => one.name === name)
  if (group === undefined)
    throw engineError('HA_NO_GROUP', { name, names: plan.groups.map((one) => one.name).join(', ') })
  const open = openLinks(plan, clock)
  const state = await open(undefined)
  try {
    const status = statusOf(group, knownRow(group, await readGroups(state)))
    if (status.current === to) return false
    const target = status[to]
    if (!target.healthy && !options.force) {
      const age = target.ageMs === undefined ? 'any time' : `${(target.ageMs / 1000).toFixed(1)} s`
      throw engineError('HA_TARGET_STALE', { role: to, name, age })
    }
    const { force, noFencing } = options
    if (!(await switchGroup({ state, open, clock, group, to, action: 'switch', force, noFencing })))
      throw engineError('HA_SWITCHED_MEANWHILE', { name })
    return true
  } finally {
    await state.close()
  }
}
