/**
 * One node's heartbeat: a write on the node, then the time of it in the state database. A node that cannot be written
 * (read only, hung, gone) gives no heartbeat.
 */
import type { Clock } from '../base/clock.js'
import { toEngineError } from '../errors/engine-error.js'
import { hidePassword } from '../topology/conninfo-uri.js'
import type { HaLine } from './ha-log.js'
import type { HaNode } from './ha-plan.js'
import { writeHeartbeat } from './ha-store.js'
import type { Link, OpenLink } from './links.js'

export interface ProberOptions {
  readonly node: HaNode
  readonly open: OpenLink
  readonly connectTimeoutMs: number
  readonly clock: Clock
  readonly line: HaLine
  readonly signal: AbortSignal
}

const writeProbe = 'update xdual set x = now()'
/** A streaming replica takes no write; one that follows nobody any more and was not promoted is no candidate either. */
const readProbe = 'select pg_last_wal_replay_lsn()'

const reason = (error: unknown) => {
  const { sqlstate, message } = toEngineError(error)
  return `${sqlstate} ${message.split('\n')[0] ?? ''}`
}

/** Probes until `signal` aborts; closes what it opened. */
export async function probeNode(options: ProberOptions): Promise<void> {
  const { node, clock, line, signal } = options
  const probe = node.group.promote && node.role === 'standby' ? readProbe : writeProbe
  const intervalMs = node.group.heartbeatIntervalMs
  let link = await connectNode(options)
  while (link !== undefined && !signal.aborted) {
    const failure = await tried(() => link?.run(probe))
    if (failure !== undefined) {
      line(`ERROR: probe of host ${node.hostId} failed: ${reason(failure.error)} : ${probe}`)
      await link.close()
      link = await connectNode(options)
    } else await noteHeartbeat(options)
    if (!signal.aborted) await clock.sleep(intervalMs, signal)
  }
  await link?.close()
}

/** Connects, for as long as it takes; the first two failures are logged. Undefined: told to end. */
async function connectNode(options: ProberOptions): Promise<Link | undefined> {
  const { node, line } = options
  const shown = hidePassword(node.conninfo)
  return untilOpen(options, () => options.open(node.conninfo), {
    failed: (error, count) => {
      if (count <= 2) line(`CONNECT ERROR: host ${node.hostId} (${shown}): ${reason(error)}`)
    },
    again: () => line(`NOTICE: host ${node.hostId} (${shown}): reconnect successful`),
  })
}

/** A connection of its own each time, so that a state database that moved or restarted is found again. */
async function noteHeartbeat(options: ProberOptions): Promise<void> {
  const { node, line } = options
  const state = await connectState(options)
  if (state === undefined) return
  const failure = await tried(() => writeHeartbeat(state, node.group.id, node.role))
  if (failure !== undefined)
    line(
      `ERROR: heartbeat of the ${node.role} of group ${node.group.id} was not written: ${reason(failure.error)}`,
    )
  await state.close()
}

/** The state database, for as long as it takes; every failure is logged. Undefined: told to end. */
export function connectState(
  options: Pick<ProberOptions, 'open' | 'connectTimeoutMs' | 'clock' | 'line' | 'signal'>,
): Promise<Link | undefined> {
  return untilOpen(options, () => options.open(undefined), {
    failed: (error) => options.line(`CONNECT ERROR: state database: ${reason(error)}`),
    again: () => options.line('NOTICE: state database: reconnect successful'),
  })
}

async function untilOpen(
  options: Pick<ProberOptions, 'connectTimeoutMs' | 'clock' | 'signal'>,
  open: () => Promise<Link>,
  tell: { failed(error: unknown, count: number): void; again(): void },
): Promise<Link | undefined> {
  const { signal } = options
  for (let failures = 0; !signal.aborted; failures++) {
    try {
      const link = await open()
      if (failures > 0) tell.again()
      return link
    } catch (error) {
      tell.failed(error, failures + 1)
      if (!signal.aborted) await options.clock.sleep(options.connectTimeoutMs, signal)
    }
  }
  return undefined
}

async function tried(
  work: () => Promise<unknown> | undefined,
): Promise<{ error: unknown } | undefined> {
  try {
    await work()
    return undefined
  } catch (error) {
    return { error }
  }
}
