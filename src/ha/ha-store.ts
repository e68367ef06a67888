/**
 * The state of the groups: table ha_config of the state database. Ages are counted by that database's clock, so that a
 * watcher whose own clock is wrong decides the same.
 */
import type { TextRow } from '../pg/admin-query.js'
import type { HaGroup, HaRole } from './ha-plan.js'
import type { Link } from './links.js'
import type { GroupState } from './switch-rules.js'

export interface StoredGroup extends GroupState {
  readonly id: number
  readonly currentHostId: number
  readonly primaryHostId: number
  readonly standbyHostId: number
}

const age = (column: string) => `extract(epoch from now()::timestamp - ${column})`

const selectGroups = `
  select ha_groupid, current_hostid, primary_hostid, standby_hostid,
         ${age('primary_hearttime')} as primary_age, ${age('standby_hearttime')} as standby_age
    from ha_config order by ha_groupid`

const ms = (seconds: string | null | undefined): number | undefined =>
  seconds === null || seconds === undefined ? undefined : Number(seconds) * 1000

function storedGroup(row: TextRow): StoredGroup {
  const [id, currentHostId, primaryHostId, standbyHostId] = [
    row['ha_groupid'],
    row['current_hostid'],
    row['primary_hostid'],
    row['standby_hostid'],
  ].map(Number) as [number, number, number, number]
  return {
    id,
    currentHostId,
    primaryHostId,
    standbyHostId,
    current: currentHostId === standbyHostId ? 'standby' : 'primary',
    primaryAgeMs: ms(row['primary_age']),
    standbyAgeMs: ms(row['standby_age']),
  }
}

/** All groups, by id. */
export async function readGroups(state: Link): Promise<StoredGroup[]> {
  return (await state.run(selectGroups)).map(storedGroup)
}

/** Notes a heartbeat of a node. */
export async function writeHeartbeat(state: Link, groupId: number, role: HaRole): Promise<void> {
  await state.run(`update ha_config set ${role}_hearttime = now() where ha_groupid = $1`, [groupId])
}

/**
 * Changes the route if it still stands where it was seen and, unless `force`, both ages still say so: one statement,
 * so that of several watchers one at most does it.
 * @returns whether the route was changed
 */
export async function flipRoute(
  state: Link,
  group: Pick<HaGroup, 'id' | 'switchAfterMs'>,
  to: HaRole,
  options: { readonly force?: boolean; readonly anyAgeOfCurrent?: boolean } = {},
): Promise<boolean> {
  const from: HaRole = to === 'primary' ? 'standby' : 'primary'
  const bound = `${group.switchAfterMs / 1000}`
  const isStale = `(${from}_hearttime is null or ${age(`${from}_hearttime`)} > ${bound})`
  const isHealthy = `${age(`${to}_hearttime`)} < ${bound}`
  const conditions = [
    `current_hostid = ${from}_hostid`,
    ...(options.force || options.anyAgeOfCurrent ? [] : [isStale]),
    ...(options.force ? [] : [isHealthy]),
  ]
  const rows = await state.run(
    `update ha_config set current_hostid = ${to}_hostid
      where ha_groupid = $1 and ${conditions.join(' and ')} returning current_hostid`,
    [group.id],
  )
  return rows.length === 1
}

/** Space of advisory locks for switches: 'pgha' as an integer. */
const lockSpace = 0x70676861

/** Whether this link is the one that switches `groupId` now; ends with the link or `unlockSwitch`. */
export async function lockSwitch(state: Link, groupId: number): Promise<boolean> {
  const rows = await state.run(`select pg_try_advisory_lock(${lockSpace}, $1) as locked`, [groupId])
  return rows[0]?.['locked'] === 't'
}

export async function unlockSwitch(state: Link, groupId: number): Promise<void> {
  await state.run(`select pg_advisory_unlock(${lockSpace}, $1)`, [groupId])
}
