/**
 * The switch from one side to the other: traffic paused, all old tables fenced behind one lock, the last changes applied,
 * sequences set, and a higher epoch committed on the new side: the point of no return. Whatever fails before it gives the
 * old side back as it was; whatever happens behind it, there is only forward. Goes either way: rollback is the same.
 */
import { randomBytes } from 'node:crypto'
import { engineError, isEngineError, toEngineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { quoteLiteral } from '../../pg/sql-names.js'
import { emptyShards, settle } from '../buckets/empty-shards.js'
import { takeIn } from '../buckets/take-in.js'
import { MARKER_PREFIX } from '../follow/follower.js'
import { catchUp } from '../marker.js'
import { makeTriggers } from '../schema/copy-schema.js'
import { advanceSequences } from '../schema/sequences.js'
import { placeOf } from '../side.js'
import type { CutoverOptions, CutoverReport } from './cutover-options.js'
import { cutoverStanding } from './epoch-store.js'
import { lockSource } from './fence.js'
import { finishSwitch, type Switched } from './finish-switch.js'
import { giveBack } from './give-back.js'
import { type Prepared, prepareCutover } from './prepare-cutover.js'
import { StepTimer } from './step-timer.js'

/** Places of `point`, in order. */
export const cutoverPoints = ['prepared', 'paused', 'fenced', 'caught-up', 'decided', 'resumed']

/**
 * @throws RESHARD_PINNED, RESHARD_BLOCKED, RESHARD_PROXY_UNREACHED: nothing was paused.
 * RESHARD_PAUSE, RESHARD_LOCK, RESHARD_CATCH_UP, RESHARD_CUTOVER: nothing is switched.
 * RESHARD_SWITCHED_HALF: it is.
 */
export async function cutover(options: CutoverOptions): Promise<CutoverReport> {
  const { source, target, followers, clock } = options
  const point = async (name: string) => options.point?.(name)
  const prepared = await prepareCutover(options)
  try {
    // Most of what is left is applied before anyone has to wait.
    await catchUp(source, followers)
    await point('prepared')
    await options.journal.setState('cutting_over')
    const timer = new StepTimer(clock)
    const startedMs = clock.monotonicMs()
    let sequences: number
    try {
      sequences = await switchOver(options, prepared, timer)
    } catch (error) {
      if (!(await isDecided(options, prepared))) {
        await giveBack(options, prepared)
        throw asCutoverFailure(error, timer.current)
      }
      // The answer to the deciding commit was lost, not the commit.
      sequences = prepared.sequences
    }
    await point('decided')
    const { targets: open, isTargetFenced: isFenced } = prepared
    const sides = { targetSide: target, sourceSide: source, open, isFenced }
    const inHand = target.isStaged ? prepared.takers : prepared.sources
    const move = { source, target, plan: options.plan, run: options.journal.run }
    const settling = { ...move, open: inHand, point }
    const switched: Switched = {
      ...{ epoch: prepared.epoch, ...sides },
      ...(target.whole ? { settle: () => settle(settling) } : {}),
    }
    const { resumedMs, backup } = await finishSwitch(options, switched, timer)
    await point('resumed')
    return {
      writePauseMs: Math.round((resumedMs - startedMs) * 10) / 10,
      steps: timer.steps,
      sequences,
      configBackup: backup,
      epoch: prepared.epoch,
      wayBack: prepared.wayBack !== undefined,
    }
  } finally {
    await prepared.close()
  }
}

async function switchOver(
  options: CutoverOptions,
  prepared: Prepared,
  timer: StepTimer,
): Promise<number> {
  const { gate, source, target, clock, budgetMs } = options
  const deadlineMs = clock.monotonicMs() + budgetMs
  const left = (): number => Math.max(1, deadlineMs - clock.monotonicMs())
  await timer.run('pausing the proxies', () => gate.pause(source.name, left()))
  await options.point?.('paused')
  const token = randomBytes(8).toString('hex')
  const passed = Promise.all(options.followers.map((follower) => follower.marker(token)))
  passed.catch(() => undefined)
  await timer.run('fencing the old tables', () => fence(options, prepared, token, deadlineMs))
  await options.point?.('fenced')
  // Nobody draws numbers from the old side any more: sequences need not wait for the changes.
  const advanced = timer.run('setting sequences', () => setSequences(options, prepared, left()))
  advanced.catch(() => undefined)
  await timer.run('applying the last changes', async () => {
    // A table that was made or changed up to the fence would be left behind.
    const isUnchanged = options.checkSource?.(prepared.sources)
    await Promise.all([within(passed, left(), options), isUnchanged])
  })
  const sequences = await advanced
  await options.point?.('caught-up')
  const { lateSchema } = options
  if (lateSchema) {
    await timer.run('making triggers', () => makeTriggers(target, lateSchema, options.journal.run))
  }
  prepared.sequences = sequences
  if (target.whole) await exchangeRows(options, prepared, timer, left)
  await prepared.wayBack?.mark(prepared.targets)
  if (clock.monotonicMs() > deadlineMs) throw engineError('RESHARD_CATCH_UP', { budgetMs })
  await timer.run('deciding', () => prepared.decide(prepared.wayBack?.facts()))
  return sequences
}

/** Where sides have shards in common every shard of the new one draws anew, the old ones too. */
async function setSequences(
  { source, target, plan }: CutoverOptions,
  prepared: Prepared,
  leftMs: number,
): Promise<number> {
  const { sources, targets } = prepared
  const { whole } = target
  // Those of shards that stay are set in the transaction that takes the rows in.
  if (target.isStaged) return 0
  if (!whole) return advanceSequences(source, target, plan, { sources, targets })
  // Who went round the proxies may hold a sequence of a shard that stays.
  const patience = `SET lock_timeout = ${Math.ceil(leftMs)}`
  await Promise.all(sources.map((client) => adminQuery(client, patience)))
  const clientOf = (place: string): HostClient => {
    const here = source.shards.findIndex((shard) => placeOf(shard) === place)
    const there = target.shards.findIndex((shard) => placeOf(shard) === place)
    return (here < 0 ? targets[there] : sources[here]) as HostClient
  }
  const all = whole.shards.map((shard) => clientOf(placeOf(shard)))
  const wholePlan = { ...plan, targetCount: whole.shards.length }
  return advanceSequences(source, whole, wholePlan, { sources, targets: all })
}

/**
 * What has moved is deleted where it was, or put where clients see it, uncommitted. The streams must not hear of deletes:
 * they would delete it from the new shards.
 */
async function exchangeRows(
  options: CutoverOptions,
  prepared: Prepared,
  timer: StepTimer,
  left: () => number,
): Promise<void> {
  await Promise.all(options.followers.map((follower) => follower.hold()))
  await options.gate.confirm?.()
  const { source, target, plan, journal } = options
  if (target.isStaged) {
    const move = { source, target, plan, run: journal.run }
    await timer.run('taking the rows in', () => takeIn(prepared.takers, move, left))
  } else {
    await timer.run('deleting what has moved', () => emptyShards(prepared.sources, plan, left))
  }
  await options.point?.('emptied')
}

/** Locks and fences every shard, then commits all, the first shard first: what it says is what proxies go by. */
async function fence(
  options: CutoverOptions,
  prepared: Prepared,
  token: string,
  deadlineMs: number,
): Promise<void> {
  const { source, plan, clock, budgetMs } = options
  const how = { plan, clock, deadlineMs, budgetMs }
  // In the transaction of the fence: who writes before it holds a lock that it waited for, nobody writes after it.
  const marker = `SELECT pg_logical_emit_message(true, ${quoteLiteral(MARKER_PREFIX)}, ${quoteLiteral(token)});`
  const closeSql = `${prepared.closeSql} ${marker}`
  const locks = await Promise.allSettled(
    prepared.fences.map((session, shard) =>
      lockSource(source, shard, session, { ...how, closeSql }),
    ),
  )
  const [first, ...others] = locks.map((lock) => {
    if (lock.status === 'rejected') throw lock.reason
    return lock.value
  })
  prepared.isFenced = true
  await first?.fence()
  await settled(others.map((one) => one.fence()))
}

/** Waits for all, then fails as the first that failed did. */
async function settled(works: readonly Promise<void>[]): Promise<void> {
  for (const end of await Promise.allSettled(works)) if (end.status === 'rejected') throw end.reason
}

async function within(
  work: Promise<unknown>,
  ms: number,
  options: Pick<CutoverOptions, 'clock' | 'budgetMs'>,
): Promise<void> {
  const over = new AbortController()
  const late = options.clock.sleep(ms, over.signal).then(() => {
    if (!over.signal.aborted) throw engineError('RESHARD_CATCH_UP', { budgetMs: options.budgetMs })
  })
  try {
    await Promise.race([work, late])
  } finally {
    over.abort()
  }
}

/** How long the new side is asked whether it has decided, when the answer to that was lost. */
const ASK_MS = 10_000

/** @throws RESHARD_UNDECIDED when nobody can say */
async function isDecided(options: CutoverOptions, prepared: Prepared): Promise<boolean> {
  if (!prepared.isDeciding) return false
  const { source, target, clock } = options
  const untilMs = clock.monotonicMs() + ASK_MS
  for (;;) {
    try {
      return (await cutoverStanding(source, target)) === 'switched'
    } catch (error) {
      if (clock.monotonicMs() > untilMs) {
        const reason = toEngineError(error).message
        throw engineError('RESHARD_UNDECIDED', { reason }, { cause: error })
      }
      await clock.sleep(200)
    }
  }
}

function asCutoverFailure(error: unknown, step: string): Error {
  if (isEngineError(error) && error.code.startsWith('RESHARD_')) return error
  return engineError(
    'RESHARD_CUTOVER',
    { step, reason: toEngineError(error).message },
    { cause: error },
  )
}
