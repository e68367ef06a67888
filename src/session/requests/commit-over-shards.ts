/** COMMIT of a transaction that wrote more than one shard, by `cross_shard_writes`. */
import { engineError } from '../../errors/engine-error.js'
import { TX_IDLE } from '../../wire/tags.js'
import { noticeFrame } from '../answers.js'
import type { SessionCore } from '../session-core.js'
import type { HeldServer } from '../state/held-servers.js'

/**
 * Commits on every server of `helds`; those that wrote decide together. They are then out of the transaction.
 * @throws the error of the first server that refused; the transaction is then rolled back everywhere
 */
export async function commitOverShards(
  core: SessionCore,
  helds: readonly HeldServer[],
): Promise<void> {
  try {
    const pending = await commit(core, helds)
    if (pending.length > 0) core.output.append(pendingNotice(pending))
  } catch (error) {
    await rollBackAll(core, helds)
    throw error
  }
}

/** ROLLBACK wherever a transaction is still open; a server that cannot is thrown away. */
export async function rollBackAll(core: SessionCore, helds: readonly HeldServer[]): Promise<void> {
  await Promise.all(
    helds.map(async (held) => {
      try {
        if (held.server.status !== TX_IDLE) await held.server.query('ROLLBACK')
        held.joined = false
        held.wrote = false
      } catch {
        core.held.discard(held, 'could not be rolled back')
      }
    }),
  )
}

async function commit(core: SessionCore, helds: readonly HeldServer[]): Promise<readonly number[]> {
  let pending: readonly number[] = []
  const writers = helds.filter((held) => held.wrote)
  if (writers.length > 1 && core.access.crossShardWrites !== 'two_phase') {
    throw engineError('SESSION_WRITES_SHARDS', {
      first: writers[0]?.shard ?? 0,
      second: writers[1]?.shard ?? 0,
    })
  }
  if (writers.length > 1) {
    const parts = writers.map(({ shard, server, notified }) => ({
      shard,
      server,
      cannotPrepare: notified,
    }))
    pending = await core.access.commitTwoPhase(parts)
  } else for (const held of writers) await held.server.query('COMMIT')
  for (const held of helds) {
    if (!held.wrote) await held.server.query('COMMIT')
    held.joined = false
    held.wrote = false
  }
  return pending
}

/** hard-parts §3.5: the decision stands, the shards follow. */
const pendingNotice = (shards: readonly number[]): Buffer =>
  noticeFrame(
    '01000',
    'WARNING',
    `the transaction is committed, but shard ${shards.join(' and ')} will show it only when it can be reached`,
    'nothing needs to be done: the shard is told as soon as it answers',
  )
