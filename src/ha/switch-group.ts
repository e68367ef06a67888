/** Changes the route of one group: one switcher at a time, fencing command, promotion, then the compare-and-set. */
import { spawn } from 'node:child_process'
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { type HaGroup, type HaRole, nodePlace } from './ha-plan.js'
import { flipRoute, lockSwitch, unlockSwitch } from './ha-store.js'
import type { Link, OpenLink } from './links.js'

export type SwitchAction = 'fail_over' | 'fail_back' | 'switch'

export interface SwitchOptions {
  readonly state: Link
  readonly open: OpenLink
  readonly clock: Clock
  readonly group: HaGroup
  readonly to: HaRole
  readonly action: SwitchAction
  /** The ages do not count. */
  readonly force?: boolean
  readonly noFencing?: boolean
}

/**
 * @returns false when the route, or the ages that led here, changed meanwhile
 * @throws HA_BUSY another switches this group; HA_FENCING the command failed: the route stays; the promotion's own error
 */
export async function switchGroup(options: SwitchOptions): Promise<boolean> {
  const { state, group, to } = options
  if (!(await lockSwitch(state, group.id))) throw engineError('HA_BUSY', { name: group.name })
  try {
    if (group.fencingCommand !== undefined && !options.noFencing) await fence(options)
    if (group.promote && to === 'standby') await promote(options)
    return await flipRoute(state, group, to, {
      force: options.force === true,
      anyAgeOfCurrent: options.action === 'switch',
    })
  } finally {
    await unlockSwitch(state, group.id).catch(() => undefined) // the lock ends with the link
  }
}

/** The command has as long as a node may be silent; it is told by its environment what it is about. */
async function fence({ group, to, action, clock }: SwitchOptions): Promise<void> {
  const command = group.fencingCommand as string
  const from = to === 'primary' ? group.standby : group.primary
  const child = spawn('/bin/sh', ['-c', command], {
    stdio: ['ignore', 'ignore', 'pipe'],
    detached: true, // a group of its own, so that all of it can be ended
    env: {
      ...process.env,
      PGSHARD_HA_ACTION: action,
      PGSHARD_HA_GROUP: group.name,
      PGSHARD_HA_GROUP_ID: String(group.id),
      PGSHARD_HA_FROM: nodePlace(from),
      PGSHARD_HA_TO: nodePlace(group[to]),
    },
  })
  let said = ''
  child.stderr.on('data', (chunk: Buffer) => {
    said = (said + chunk.toString()).slice(-500)
  })
  const ended = new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => resolve(error.message))
    child.once('close', (code, signal) =>
      resolve(code === 0 ? undefined : `${code === null ? signal : `exit code ${code}`} ${said}`),
    )
  })
  const done = new AbortController()
  const late = clock
    .sleep(group.switchAfterMs, done.signal)
    .then(() => `it did not end within ${group.switchAfterMs} ms`)
  const reason = await Promise.race([ended, late])
  done.abort()
  if (reason === undefined) return
  if (child.exitCode === null && child.pid !== undefined) endGroup(child.pid)
  throw engineError('HA_FENCING', { name: group.name, reason: reason.trim() })
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL')
  } catch {
    // it has ended
  }
}

async function promote({ group, open }: SwitchOptions): Promise<void> {
  const node = await open(group.standby)
  try {
    await node.run(
      'select case when pg_is_in_recovery() then pg_promote(false) else true end as promoted',
    )
  } finally {
    await node.close()
  }
}
