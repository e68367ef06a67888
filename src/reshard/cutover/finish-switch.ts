/** What follows the point of no return. All is tried, the first failure told; may be run again by `resume`. */
import { engineError, toEngineError } from '../../errors/engine-error.js'
import type { HostClient } from '../../pg/host-client.js'
import { type ReshardSide, withShard } from '../side.js'
import type { CutoverOptions } from './cutover-options.js'
import { spreadEpoch } from './epoch-store.js'
import { lowerTriggers } from './fence.js'
import type { StepTimer } from './step-timer.js'

export interface Switched {
  readonly epoch: number
  readonly sourceSide: ReshardSide
  readonly targetSide: ReshardSide
  /** Its connections, when they are open. */
  readonly open?: readonly HostClient[]
  /** False: it is known to have no fence up. */
  readonly isFenced?: boolean
  /** What must be done before anybody goes on. */
  readonly settle?: () => Promise<void>
}

interface Failure {
  readonly step: string
  readonly error: unknown
}

async function openSide(side: ReshardSide, open?: readonly HostClient[]): Promise<void> {
  if (open) await Promise.all(open.map(lowerTriggers))
  else for (const shard of side.shards) await withShard(shard, lowerTriggers)
}

/** @throws RESHARD_SWITCHED_HALF */
export async function finishSwitch(
  options: Pick<CutoverOptions, 'gate' | 'config' | 'clock'>,
  switched: Switched,
  timer: StepTimer,
): Promise<{ resumedMs: number; backup: string | null }> {
  const { gate, config, clock } = options
  const { epoch, sourceSide, targetSide } = switched
  const failures: Failure[] = []
  const attempt = async <T>(step: string, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await timer.run(step, work)
    } catch (error) {
      failures.push({ step, error })
      return undefined
    }
  }
  const { name } = sourceSide
  if (switched.settle) {
    await attempt('deleting what has moved from the old shards', switched.settle)
    if (failures.length > 0) throw halfSwitched(failures[0] as Failure)
  }
  const switchFile = () => attempt('switching the configuration file', () => config.commit())
  if (switched.isFenced !== false) {
    await attempt('opening the new side', () => openSide(targetSide, switched.open))
  }
  let backup: string | null | undefined
  if (gate.follow) await attempt('resuming the proxies', async () => gate.follow?.(name))
  else {
    // Who knows no epoch goes by the file.
    backup = await switchFile()
    await attempt('reloading the proxies', () => gate.reload())
    await attempt('resuming the proxies', () => gate.resume(name))
  }
  const resumedMs = clock.monotonicMs()
  if (gate.follow) {
    backup = await switchFile()
    await attempt('reloading the proxies', () => gate.reload())
  }
  await attempt('telling all shards the epoch', () => spreadEpoch(sourceSide, targetSide, epoch))
  const [first] = failures
  if (!first) return { resumedMs, backup: backup ?? null }
  throw halfSwitched(first)
}

function halfSwitched({ step, error }: Failure): Error {
  const reason = toEngineError(error).message
  return engineError('RESHARD_SWITCHED_HALF', { step, reason }, { cause: error })
}
