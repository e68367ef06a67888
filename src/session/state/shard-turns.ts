/** Which shard answers what any can: in turn, or always the same for a client; but for those that are known to be down. */
import type { DatabaseAccess } from '../environment.js'

/** Sessions of one statement each would all begin with the same shard. */
let started = 0

export function shardsInTurn(
  access: Pick<DatabaseAccess, 'pools' | 'planner' | 'readsOneShard'>,
): () => number {
  let turn = started++
  return () => {
    const { pools, planner, readsOneShard } = access
    turn %= planner.shardCount
    if (readsOneShard && pools.isUp(turn)) return turn
    for (let i = 0; i < planner.shardCount; i++) {
      turn = (turn + 1) % planner.shardCount
      if (pools.isUp(turn)) break
    }
    return turn
  }
}
