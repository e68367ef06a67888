/** The streams applied until all parts are of one moment, then what only a consistent copy can bear. */
import { printLsn } from '../../replication/lsn.js'
import { Follower } from '../follow/follower.js'
import { makeSlots, publicationName, slotName } from '../journal/run-objects.js'
import { catchUp } from '../marker.js'
import { hasUnique, makeTriggers, makeUnique } from '../schema/copy-schema.js'
import type { RunContext } from './run-context.js'

/** Starts the streams unless they run. @throws RESHARD_SLOT_GONE, REPLICATION_SLOT_LOST */
export async function startFollowers(context: RunContext): Promise<void> {
  if (context.followers.length > 0) return
  const { options, found, journal } = context
  const { source, target, clock } = options
  const parts = await journal.parts()
  const confirmed = await makeSlots(journal, source, clock, true)
  const followers = source.shards.map((server, shard) => {
    const { plan, sourceVersion, binary, replicaRole } = found
    return new Follower({
      plan,
      run: journal.run,
      shard,
      source: server,
      targets: target.shards,
      slot: slotName(journal.run, shard),
      publication: publicationName(journal.run),
      startLsn: confirmed[shard] as (typeof confirmed)[number],
      serverVersion: sourceVersion,
      binary,
      replicaRole,
      clock,
      parts,
      onBatch: options.atPoint && (() => context.point('follow:batch')),
      onCommitted: options.atPoint && (() => context.point('follow:half')),
    })
  })
  // Known from the first moment, so that whatever fails stops all of them.
  context.followers = followers
  const ends = await Promise.allSettled(followers.map((follower) => follower.start()))
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

export async function followStep(context: RunContext): Promise<void> {
  const { options, found, journal } = context
  const { source, target } = options
  await context.checkTables()
  await startFollowers(context)
  await context.point('follow:started')
  context.say('applying what was written meanwhile')
  // The marker is younger than every watermark: when it has passed, so have they.
  await context.watched(catchUp(source, context.followers))
  context.say(`caught up: ${context.changes()} changes applied`)
  await context.point('follow:caught-up')
  const dump = await context.dump()
  if (dump && hasUnique(dump)) {
    context.say('making unique indexes')
    await held(context, () => makeUnique(target, dump, { run: journal.run, jobs: options.jobs }))
  }
  if (dump && found.replicaRole) await makeTriggers(target, dump, journal.run)
  await context.watched(catchUp(source, context.followers))
  await journal.note({
    caught_up_at: context.followers.map(({ appliedLsn }) => printLsn(appliedLsn)),
  })
  if (options.keepFollowing && options.stopAfter === 'follow') await followOn(context)
}

/** Between two transactions of every source. */
async function held(context: RunContext, work: () => Promise<void>): Promise<void> {
  const { followers } = context
  try {
    await context.watched(Promise.all(followers.map((follower) => follower.hold())))
    await context.watched(work())
  } finally {
    for (const follower of followers) follower.release()
  }
}

const TELL_PERIOD_MS = 1_000

/** Applies until it is interrupted. */
async function followOn(context: RunContext): Promise<void> {
  const { clock, signal, listener } = context.options
  context.say('following; interrupt to stop')
  while (!signal?.aborted) {
    await context.watched(clock.sleep(TELL_PERIOD_MS, signal))
    listener.followed?.(context.changes())
  }
}
