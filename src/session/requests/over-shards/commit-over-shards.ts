/** The end of a transaction over several servers: COMMIT by `cross_shard_writes`, or ROLLBACK everywhere. */
import { engineError, toEngineError } from '../../../errors/engine-error.js'
import { TWO_PHASE } from '../../../metrics/request-times.js'
import { TX_IDLE } from '../../../wire/tags.js'
import { noticeFrame } from '../../answers.js'
import type { SessionCore } from '../../session-core.js'
import type { HeldServer } from '../../state/held-servers.js'

/**
 * Commits on every server of `helds`; those that wrote decide together. They are then out of the transaction.
 * @throws the error of the first server that refused; the transaction is then rolled back everywhere
 */
export async function commitOverShards(
  core: SessionCore,
  helds: readonly HeldServer[],
): Promise<void> {
  const committing = commit(core, helds)
  // who clears up behind a client that has gone must not disturb it
  core.held.ending = { done: committing, decision: undefined }
  try {
    await committing
    // what comes next, of this client or of another, shall know what was made
    if (core.transaction.changedSchema) await core.access.schemaChanged()
  } catch (error) {
    await rollBackAll(core, helds)
    throw error
  } finally {
    core.held.ending = undefined
  }
}

/** ROLLBACK wherever a transaction is still open; a server that cannot is thrown away. */
export async function rollBackAll(core: SessionCore, helds: readonly HeldServer[]): Promise<void> {
  await Promise.all(
    helds.map(async (held) => {
      if (!held.joined) return
      isOut(held)
      try {
        if (held.server.status !== TX_IDLE) await held.server.query('ROLLBACK')
        held.server.settings = core.transaction.base
      } catch {
        core.held.discard(held, 'could not be rolled back')
      }
    }),
  )
}

async function commit(core: SessionCore, helds: readonly HeldServer[]): Promise<void> {
  const writers = helds.filter((held) => held.wrote)
  if (writers.length < 2) await commitEach(core, writers)
  else await commitWriters(core, writers)
  await commitEach(
    core,
    helds.filter((held) => held.joined),
  )
}

async function commitWriters(core: SessionCore, writers: readonly HeldServer[]): Promise<void> {
  switch (core.access.crossShardWrites) {
    case 'error':
      throw engineError('SESSION_WRITES_SHARDS', {
        first: writers[0]?.shard ?? 0,
        second: writers[1]?.shard ?? 0,
      })
    case 'best_effort':
      return commitOneByOne(core, writers)
    case 'two_phase': {
      const pending = await core.access.commitTwoPhase(
        writers.map(({ shard, server, notified }) => ({ shard, server, cannotPrepare: notified })),
        (decision) => {
          if (core.held.ending) core.held.ending.decision = decision
        },
      )
      for (const held of writers) committed(core, held)
      core.figures.twoPhase++
      if (core.running) core.running.requestClass = TWO_PHASE
      if (pending.length > 0) core.output.append(pendingNotice(pending))
    }
  }
}

/** Only when asked for by name: a failure between two of them leaves the transaction half done, and says so. */
async function commitOneByOne(core: SessionCore, writers: readonly HeldServer[]): Promise<void> {
  const done: number[] = []
  for (const held of writers) {
    try {
      await commitEach(core, [held])
    } catch (error) {
      if (done.length === 0) throw error
      const reason = toEngineError(error).message
      const shards = { done: done.join(' and '), failed: held.shard, reason }
      throw engineError('SESSION_COMMIT_IN_PART', shards, { cause: error })
    }
    done.push(held.shard)
  }
  core.output.append(bestEffortNotice(done))
}

async function commitEach(core: SessionCore, helds: readonly HeldServer[]): Promise<void> {
  const ends = await Promise.allSettled(
    helds.map(async (held) => {
      const results = await held.server.query('COMMIT')
      committed(core, held)
      if (results.at(-1)?.tag === 'COMMIT') return
      throw engineError('TWO_PHASE_ROLLED_BACK', { reason: 'the transaction had failed' })
    }),
  )
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

function committed(core: SessionCore, held: HeldServer): void {
  isOut(held)
  held.server.settings = core.transaction.settings
}

function isOut(held: HeldServer): void {
  held.joined = false
  held.worked = false
  held.wrote = false
  held.notified = false
}

/** hard-parts §3.5: the decision stands, the shards follow. */
const pendingNotice = (shards: readonly number[]): Buffer =>
  noticeFrame(
    '01000',
    'WARNING',
    `the transaction is committed, but shard ${shards.join(' and ')} will show it only when it can be reached`,
    'nothing needs to be done: the shard is told as soon as it answers',
  )

/** hard-parts §3.6 */
const bestEffortNotice = (shards: readonly number[]): Buffer =>
  noticeFrame(
    '00000',
    'NOTICE',
    `shards ${shards.join(', ')} were committed one after the other (cross_shard_writes = best_effort)`,
  )
