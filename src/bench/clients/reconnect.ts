/** Opens a client's connection, again and again where the run allows that. */
import { toEngineError } from '../../errors/engine-error.js'
import type { BenchConnection } from './bench-connection.js'
import type { ClientGroup } from './client-group.js'
import type { ConnectionSource } from './connection-source.js'

/** Between attempts, so that a server that comes back is met within it. */
const PAUSE_MS = 20

/** The connection; `over` when the run ended meanwhile, `failed` when it could not be had (which is logged). */
export async function openConnection(
  source: ConnectionSource,
  group: ClientGroup,
): Promise<BenchConnection | 'over' | 'failed'> {
  const { plan, clock } = group
  const untilMs = clock.monotonicMs() + (plan.reconnectMs ?? 0)
  for (;;) {
    try {
      return await source.next()
    } catch (error) {
      if (plan.reconnectMs !== undefined && group.isOver) return 'over'
      if (clock.monotonicMs() >= untilMs) {
        group.log(toEngineError(error).message)
        return 'failed'
      }
      await group.sleep(PAUSE_MS)
    }
  }
}
