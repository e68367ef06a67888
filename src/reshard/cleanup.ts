/** Takes away what a run left behind, however it ended. Idempotent; what is not ours is never touched. */
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { dropIncoming } from './buckets/incoming.js'
import { dropWayBack } from './cutover/drop-way-back.js'
import { cutoverStanding, readEpochOf, reopenStaged } from './cutover/epoch-store.js'
import { isRaised, liftFence } from './cutover/fence.js'
import { reopenSide } from './cutover/give-back.js'
import { Journal, type JournalObject } from './journal/journal.js'
import { dropSourceObjects } from './journal/run-objects.js'
import { findRun } from './run-status.js'
import { dropTargetObjects } from './schema/copy-schema.js'
import { type ReshardSide, withShard } from './side.js'

export interface CleanupOptions {
  readonly from: ReshardSide
  readonly to: ReshardSide
  readonly clock: Clock
  /** Remove the tables that an unfinished run made on the targets. */
  readonly dropTarget: boolean
  /** Let the old side be written again after a cutover. */
  readonly liftFence: boolean
}

export interface CleanupReport {
  readonly run: string
  readonly removed: readonly string[]
  /** What stays, and why. */
  readonly kept: readonly string[]
}

const label = ({ kind, side, shard, name }: JournalObject): string =>
  `${kind} ${name} on ${side} shard ${shard}`

/** @throws RESHARD_NO_RUN */
export async function cleanupRun(options: CleanupOptions): Promise<CleanupReport> {
  const { from, to, clock } = options
  const found = await findRun(from, to)
  if (!found) throw engineError('RESHARD_NO_RUN', { from: from.name, to: to.name })
  const { record, source, target, isSwitched } = found
  const journal = await Journal.continue(record, target, clock)
  const removed: string[] = []
  const gone = async (object: JournalObject): Promise<void> => {
    removed.push(label(object))
    await journal.markGone(object)
  }
  try {
    await dropSourceObjects(record.objects, source, clock, gone)
    await dropWayBack(record.objects, { source, target }, clock, gone)
    // A process that died behind the deciding commit has told neither the journal nor the file.
    const standing = await cutoverStanding(source, target)
    const isDone = isSwitched || record.state === 'cut_over' || standing === 'switched'
    if (standing === 'fenced') await reopenSide(source)
    if (target.isStaged && !isDone) await reopenStaged(source)
    const isSettled = (await readEpochOf(target))?.active === true
    const context = { options, source, target, isDone, isSettled, gone }
    const kept = [
      ...(await cleanFences(record.objects, context)),
      ...(await cleanTarget(record.objects, context)),
    ]
    if (!isDone) await journal.setState('cleaned')
    return { run: record.run, removed, kept }
  } finally {
    await journal.close()
  }
}

interface Cleaning {
  readonly options: CleanupOptions
  readonly source: ReshardSide
  readonly target: ReshardSide
  /** The cutover has happened: the new side is the truth. */
  readonly isDone: boolean
  /** Clients are served from there. */
  readonly isSettled: boolean
  readonly gone: (object: JournalObject) => Promise<void>
}

async function cleanFences(
  objects: readonly JournalObject[],
  cleaning: Cleaning,
): Promise<string[]> {
  const { options, source, target, isDone, gone } = cleaning
  const kept: string[] = []
  for (const object of objects.filter(({ kind }) => kind === 'fence')) {
    const shard = (object.side === 'source' ? source : target).shards[object.shard]
    // The old shards serve on where sides have some in common; what is up is waited for.
    const isServing =
      isDone && target.whole !== undefined && !target.isStaged && shard !== undefined
    const isUp = isServing && (await withShard(shard, isRaised))
    if (isUp) {
      kept.push(`${label(object)}: the move has yet to end (reshard resume)`)
      continue
    }
    if (isDone && !isServing && !options.liftFence) {
      kept.push(`${label(object)}: it keeps direct writers off the old side (--lift-fence)`)
      continue
    }
    if (shard) await withShard(shard, liftFence)
    await gone(object)
  }
  return kept
}

async function cleanTarget(
  objects: readonly JournalObject[],
  cleaning: Cleaning,
): Promise<string[]> {
  const { options, target, isDone, gone } = cleaning
  const kept: string[] = []
  for (const object of objects.filter(({ kind }) => kind === 'incoming')) {
    // Behind the decision they hold what is yet to be taken in.
    if (isDone && !cleaning.isSettled) {
      kept.push(`${label(object)}: the move has yet to end (reshard resume)`)
      continue
    }
    await dropIncoming(target)
    await gone(object)
  }
  // After the cutover what the run made is the truth: it is nobody's to remove.
  if (isDone) return kept
  for (const object of objects.filter(({ kind }) => kind === 'target_schema')) {
    if (!options.dropTarget) {
      kept.push(`${label(object)}: tables and rows of the unfinished run (--drop-target)`)
      continue
    }
    await dropTargetObjects(target)
    await gone(object)
  }
  return kept
}
