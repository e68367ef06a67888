/**
 * The end of a move between sides that have shards in common: what has moved is deleted from the shards that stay, in the
 * transaction that lowers their fence. Before the decision it is not committed, so that a cutover can still be given up.
 */
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { activate, readEpoch, unfenceSql } from '../cutover/epoch-store.js'
import { loweringSql } from '../cutover/fence.js'
import type { MovePlan } from '../move-table.js'
import { type ReshardSide, withShard } from '../side.js'
import { forEver, runWithin, type TimeLeft } from './run-within.js'
import { settleTakenIn } from './take-in.js'

/** Opens a transaction on a shard in which the rows that have moved are gone and the fence is down. */
async function emptyShard(client: HostClient, plan: MovePlan, left: TimeLeft): Promise<void> {
  const deletes = plan.tables
    .filter(({ moving }) => moving !== undefined)
    .map(({ sqlName, moving }) => `DELETE FROM ONLY ${sqlName} WHERE ${moving}`)
  // Rows do not go, they are elsewhere: triggers and foreign keys are not to act on it.
  const lowering = await loweringSql(client)
  await adminQuery(
    client,
    `BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL session_replication_role = replica; ${lowering}`,
  )
  await runWithin(client, deletes, left)
  await adminQuery(client, unfenceSql)
}

/** On the shards of the old side at once, uncommitted. */
export async function emptyShards(
  clients: readonly HostClient[],
  plan: MovePlan,
  left: TimeLeft,
): Promise<void> {
  await settled(clients.map((client) => emptyShard(client, plan, left)))
}

export interface Settling {
  readonly source: ReshardSide
  readonly target: ReshardSide
  readonly plan: MovePlan
  readonly run: string
  /** Connections in the transactions of `emptyShards` or `takeIn`, when they are open. */
  readonly open?: readonly HostClient[]
  /** Named places, for tests that end the process there. */
  readonly point?: ((name: string) => Promise<void>) | undefined
}

/** Places of `point`, in order, behind the decision. */
export const settlingPoints = ['emptied', 'half-settled', 'settled']

/** Behind the decision: the deletes committed, or the rows taken in; then the new side serves. Idempotent. */
export async function settle(settling: Settling): Promise<void> {
  const { source, target, plan, open, point } = settling
  if (target.isStaged) return settleTakenIn(settling, open, point)
  for (const [shard, client] of (open ?? []).entries()) {
    // What was lost is done again below.
    await adminQuery(client, 'COMMIT').catch(() => undefined)
    if (shard === 0) await point?.('half-settled')
  }
  for (const shard of source.shards) {
    await withShard(shard, async (client) => {
      if ((await readEpoch(client))?.fenced === false) return
      await emptyShard(client, plan, forEver)
      await adminQuery(client, 'COMMIT')
    })
  }
  await point?.('settled')
  await activate(target)
}

/** Waits for all, then fails as the first that failed did. */
async function settled(works: readonly Promise<void>[]): Promise<void> {
  for (const end of await Promise.allSettled(works)) if (end.status === 'rejected') throw end.reason
}
