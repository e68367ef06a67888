/** What follows the point of no return. All is tried, the first failure told; may be run again by `resume`. */
import { engineError, toEngineError } from '../../errors/engine-error.js'
import { type ReshardSide, withShard } from '../side.js'
import type { CutoverOptions } from './cutover-options.js'
import { spreadEpoch } from './epoch-store.js'
import { lowerTriggers } from './fence.js'
import type { StepTimer } from './step-timer.js'

export interface Switched {
  readonly epoch: number
  readonly sourceSide: ReshardSide
  readonly targetSide: ReshardSide
}

/** @throws RESHARD_SWITCHED_HALF */
export async function finishSwitch(
  options: Pick<CutoverOptions, 'gate' | 'config' | 'clock'>,
  switched: Switched,
  timer: StepTimer,
): Promise<{ resumedMs: number; backup: string | null }> {
  const { gate, config, clock } = options
  const { epoch, sourceSide, targetSide } = switched
  const failures: { step: string; error: unknown }[] = []
  const attempt = async <T>(step: string, work: () => Promise<T>): Promise<T | undefined> => {
    try {
      return await timer.run(step, work)
    } catch (error) {
      failures.push({ step, error })
      return undefined
    }
  }
  await attempt('opening the new side', async () => {
    for (const shard of targetSide.shards) await withShard(shard, lowerTriggers)
  })
  const backup = await attempt('switching the configuration file', () => config.commit())
  await attempt('reloading the proxies', () => gate.reload())
  await attempt('resuming the proxies', () => gate.resume(sourceSide.name))
  const resumedMs = clock.monotonicMs()
  await attempt('telling all shards the epoch', () => spreadEpoch(sourceSide, targetSide, epoch))
  const [first] = failures
  if (!first) return { resumedMs, backup: backup ?? null }
  const reason = toEngineError(first.error).message
  throw engineError('RESHARD_SWITCHED_HALF', { step: first.step, reason }, { cause: first.error })
}
