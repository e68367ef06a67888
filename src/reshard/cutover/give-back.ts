/** A cutover that is given up before its point of no return: fences lowered, traffic resumed, the old side as it was. */
import { toEngineError } from '../../errors/engine-error.js'
import { type ReshardSide, withShard } from '../side.js'
import type { CutoverOptions } from './cutover-options.js'
import { lowerFence } from './fence.js'
import type { Prepared } from './prepare-cutover.js'

/** Lowers the fences of a side, the first shard last: its row is what proxies go by. */
export async function reopenSide(side: ReshardSide): Promise<void> {
  for (const shard of [...side.shards].reverse()) await withShard(shard, lowerFence)
}

/** What fails here is logged, because the reason to give up is what counts. */
export async function giveBack(options: CutoverOptions, prepared: Prepared): Promise<void> {
  const { gate, source, log } = options
  for (const client of [...prepared.sources, ...prepared.takers])
    await client.query('ROLLBACK').catch(() => undefined)
  if (prepared.isFenced) {
    await reopenSide(source).catch((error: unknown) => {
      log.error('could not lower the fence of the old side: say pgshard reshard resume', {
        reason: toEngineError(error).message,
      })
    })
  }
  await gate.resume(source.name).catch((error: unknown) => {
    log.error('could not resume a proxy: say RELOAD and then RESUME at its console', {
      reason: toEngineError(error).message,
    })
  })
}
