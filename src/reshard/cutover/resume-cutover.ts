/** A cutover whose process died: given up before the point of no return, finished behind it. */
import type { Clock } from '../../base/clock.js'
import type { Log } from '../../base/log.js'
import { toEngineError } from '../../errors/engine-error.js'
import { settle } from '../buckets/empty-shards.js'
import type { MovePlan } from '../move-table.js'
import type { ReshardSide } from '../side.js'
import { readEpochOf } from './epoch-store.js'
import { finishSwitch } from './finish-switch.js'
import { reopenSide } from './give-back.js'
import { StepTimer } from './step-timer.js'
import type { ConfigSwitch } from './switch-config.js'
import type { TrafficGate } from './traffic-gate.js'

/** Proxies that were paused by the dead process, and can be reached, go on; the others follow the epoch by themselves. */
async function reach(gate: TrafficGate, log: Log): Promise<boolean> {
  try {
    await gate.open()
    return true
  } catch (error) {
    log.warn('not all proxies were reached: say RELOAD and RESUME at their consoles', {
      reason: toEngineError(error).message,
    })
    return false
  }
}

/** Lifts what a dead cutover left on the old side, which goes on. Idempotent. */
export async function abandonCutover(options: {
  readonly source: ReshardSide
  readonly gate: TrafficGate
  readonly log: Log
}): Promise<void> {
  const { source, gate, log } = options
  await reopenSide(source)
  await reach(gate, log)
  await gate.resume(source.name).catch(() => undefined)
}

/** Does what was left behind the point of no return. Idempotent. @throws RESHARD_SWITCHED_HALF */
export async function completeCutover(options: {
  readonly source: ReshardSide
  readonly target: ReshardSide
  /** Of a move between sides that have shards in common. */
  readonly plan?: MovePlan
  readonly run?: string
  readonly gate: TrafficGate
  readonly config: ConfigSwitch
  readonly clock: Clock
  readonly log: Log
  readonly point?: (name: string) => Promise<void>
}): Promise<void> {
  const { source, target, gate, config, clock, log } = options
  const row = await readEpochOf(target)
  await config.prepare()
  await reach(gate, log)
  const { plan, run, point } = options
  const isShared = target.whole !== undefined && plan !== undefined && run !== undefined
  const switched = {
    ...{ epoch: row?.epoch ?? 1, sourceSide: source, targetSide: target },
    ...(isShared ? { settle: () => settle({ source, target, plan, run, point }) } : {}),
  }
  await finishSwitch({ gate, config, clock }, switched, new StepTimer(clock))
}
