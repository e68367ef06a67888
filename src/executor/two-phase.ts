/**
 * Commit of a transaction that wrote on several shards: all or none, whoever dies when.
 *
 *   ready all → PREPARE all but one → that one writes the decision in its own transaction and commits
 *   (this single commit is the outcome) → COMMIT PREPARED the others → forget the decision
 *
 * The proxy keeps nothing: what it leaves behind is brought to its end by `two-phase-recovery.ts`, run by anyone.
 */
import { createHash, randomBytes } from 'node:crypto'
import type { Clock } from '../base/clock.js'
import { engineError, toEngineError } from '../errors/engine-error.js'
import type { ShardId } from '../sharding/shard-set.js'
import {
  firstRow,
  GONE,
  gidOf,
  refusalState,
  type TwoPhaseIdentity,
  type TwoPhaseServer,
  type WithServer,
} from './two-phase-identity.js'

/** A shard with its server, which has the transaction open and not failed. */
export interface TwoPhasePart {
  readonly shard: ShardId
  readonly server: TwoPhaseServer
  /** The transaction did here what cannot be prepared (NOTIFY, LISTEN, an exported snapshot): this shard decides. */
  readonly cannotPrepare?: boolean
}

/**
 * The points at which a process may die, in order; `preparing` and `committing`: the first of several shards has answered;
 * `deciding`: the decision was sent and not answered. A test kills `serve` at each of them.
 */
export const TWO_PHASE_STEPS = [
  'begun',
  'readied',
  'preparing',
  'prepared',
  'deciding',
  'decided',
  'committing',
  'committed',
  'forgotten',
] as const
export type TwoPhaseStep = (typeof TWO_PHASE_STEPS)[number]

export interface TwoPhaseCommit {
  readonly identity: TwoPhaseIdentity
  readonly withServer: WithServer
  readonly clock: Clock
  /** How long the second phase is tried before the client hears COMMIT with a warning (`two_phase_wait_ms`). */
  readonly waitMs: number
  /** Told of the key in the gids before the first PREPARE. */
  readonly onKey?: (key: string) => void
  readonly onStep?: (step: TwoPhaseStep) => Promise<void> | void
}

export interface TwoPhaseOutcome {
  /** Shards that have not committed yet; recovery or they themselves will. Empty: all is done. */
  readonly pending: readonly ShardId[]
}

/** One transaction under way. */
interface Decision {
  readonly secret: string
  /** The head of its hash, in hex. */
  readonly key: string
  readonly deciding: TwoPhasePart
  readonly others: readonly { readonly part: TwoPhasePart; readonly gid: string }[]
  /** The gid by which the deciding shard can be asked. */
  readonly anyGid: string
  readonly otherIds: readonly number[]
}

const RETRY_MS = 100

/**
 * Commits on every part, or on none.
 * @throws the error of the shard that refused, TWO_PHASE_UNPREPARABLE or TWO_PHASE_ROLLED_BACK, all rolled back; TWO_PHASE_UNKNOWN
 */
export async function commitTwoPhase(
  parts: readonly TwoPhasePart[],
  commit: TwoPhaseCommit,
): Promise<TwoPhaseOutcome> {
  if (parts.length < 2) {
    for (const part of parts) await part.server.query('COMMIT')
    return { pending: [] }
  }
  await commit.onStep?.('begun')
  const decision = plan(await readyAll(parts), commit.identity)
  commit.onKey?.(decision.key)
  await commit.onStep?.('readied')
  await prepareOthers(decision, commit)
  await commit.onStep?.('prepared')
  await decide(decision, commit)
  await commit.onStep?.('decided')
  const pending = await finish(decision, commit)
  await commit.onStep?.('committed')
  if (pending.length === 0) void forget(decision, commit)
  return { pending }
}

/**
 * Deferred constraints are checked and the role is put back: a prepared transaction belongs to the current role, and
 * only that one (or a superuser) may finish it. The transaction id is there before the first PREPARE, so that an
 * abort row can be removed by its age. A decision must be on disk before others act on it.
 */
const ready = `SET CONSTRAINTS ALL IMMEDIATE; SET LOCAL ROLE NONE;
SELECT pg_catalog.pg_current_xact_id(), pg_catalog.pg_my_temp_schema() <> 0
  OR EXISTS (SELECT FROM pg_catalog.pg_cursor() c WHERE c.is_holdable),
  CASE pg_catalog.current_setting('synchronous_commit')
    WHEN 'off' THEN pg_catalog.set_config('synchronous_commit', 'on', true) END`

/** Readies every part; the first of the list that comes back must decide. */
async function readyAll(parts: readonly TwoPhasePart[]): Promise<TwoPhasePart[]> {
  const ends = await Promise.allSettled(parts.map((part) => firstRow(part.server, ready)))
  const failed = ends.find((end) => end.status === 'rejected')
  if (failed) {
    await rollBack(parts)
    throw explain(failed.reason)
  }
  const suspects = ends.map(
    (end, i) => parts[i]?.cannotPrepare || (end.status === 'fulfilled' && end.value[1] === 't'),
  )
  const sure = parts.findIndex((part) => part.cannotPrepare)
  const deciding = Math.max(0, sure >= 0 ? sure : suspects.indexOf(true))
  const first = parts[deciding] as TwoPhasePart
  return [first, ...parts.filter((part) => part !== first)]
}

function plan(ordered: readonly TwoPhasePart[], identity: TwoPhaseIdentity): Decision {
  const [deciding, ...rest] = ordered as [TwoPhasePart, ...TwoPhasePart[]]
  const secret = randomBytes(32)
  const key = createHash('sha256').update(secret).digest('hex').slice(0, 32)
  const idOf = (part: TwoPhasePart) => identity.shardIds[part.shard] as number
  const decidingId = idOf(deciding)
  const others = rest.map((part) => ({
    part,
    gid: gidOf(identity.clusterId, { decidingId, key, shardId: idOf(part) }),
  }))
  return {
    key,
    secret: `'\\x${secret.toString('hex')}'::bytea`,
    deciding,
    others,
    anyGid: others[0]?.gid ?? '',
    otherIds: rest.map(idOf),
  }
}

async function prepareOthers(decision: Decision, commit: TwoPhaseCommit): Promise<void> {
  const first = onceAt('preparing', commit)
  const ends = await Promise.allSettled(
    decision.others.map(({ part, gid }) => prepare(part.server, gid).then(first)),
  )
  const refused = ends.flatMap((end, i) =>
    end.status === 'rejected'
      ? [{ reason: end.reason as unknown, shard: decision.others[i]?.part.shard ?? 0 }]
      : [],
  )
  const [refusal] = refused
  if (!refusal) return
  await undo(decision, commit)
  if (refusalState(refusal.reason) !== '0A000') throw explain(refusal.reason)
  throw engineError(
    'TWO_PHASE_UNPREPARABLE',
    { shard: refusal.shard, reason: toEngineError(refusal.reason).message },
    { cause: refusal.reason },
  )
}

/** Tells of the step the first time that it is called. */
function onceAt(step: TwoPhaseStep, { onStep }: TwoPhaseCommit): () => Promise<void> | void {
  let told = onStep === undefined
  return () => {
    if (told) return
    told = true
    return onStep?.(step)
  }
}

/** A transaction that has failed answers PREPARE TRANSACTION with ROLLBACK, not with an error. */
async function prepare(server: TwoPhaseServer, gid: string): Promise<void> {
  const results = await server.query(`PREPARE TRANSACTION '${gid}'`)
  if (results.at(-1)?.tag !== 'PREPARE TRANSACTION') {
    throw engineError('TWO_PHASE_ROLLED_BACK', { reason: 'the transaction had failed' })
  }
}

async function decide(decision: Decision, commit: TwoPhaseCommit): Promise<void> {
  const { deciding, secret, otherIds } = decision
  try {
    const answer = deciding.server.query(
      `SELECT pgshard.decide(${secret}, '{${otherIds.join(',')}}'); COMMIT`,
    )
    if (commit.onStep) await Promise.all([answer, commit.onStep('deciding')])
    const results = await answer
    if (results.at(-1)?.tag === 'COMMIT') return
  } catch (error) {
    // An ERROR leaves the transaction undone; anything else may have come after the commit.
    if (refusalState(error) === undefined) {
      if (await wasCommitted(decision, commit, error)) return
      await undo(decision, commit)
      throw explain(error)
    }
    await undo(decision, commit)
    throw error
  }
  await undo(decision, commit)
  throw engineError('TWO_PHASE_ROLLED_BACK', { reason: 'the transaction had failed' })
}

/** Asks the deciding shard on another connection; where there is no decision yet, this makes it abort. */
async function wasCommitted(
  decision: Decision,
  commit: TwoPhaseCommit,
  cause: unknown,
): Promise<boolean> {
  const { shard } = decision.deciding
  const until = commit.clock.monotonicMs() + commit.waitMs
  for (;;) {
    try {
      return await commit.withServer(shard, async (server) => {
        const [outcome] = await firstRow(server, `SELECT pgshard.abort('${decision.anyGid}')`)
        return outcome === 'commit'
      })
    } catch (again) {
      if (commit.clock.monotonicMs() >= until) {
        const detail = `${toEngineError(cause).message}; asked again: ${toEngineError(again).message}`
        throw engineError('TWO_PHASE_UNKNOWN', { shard }, { cause: again, detail })
      }
      await commit.clock.sleep(RETRY_MS)
    }
  }
}

/** The second phase; gives the shards that could not be reached in time. */
async function finish(decision: Decision, commit: TwoPhaseCommit): Promise<ShardId[]> {
  const until = commit.clock.monotonicMs() + commit.waitMs
  const first = onceAt('committing', commit)
  const done = await Promise.all(
    decision.others.map(async ({ part, gid }) => {
      const isDone = await commitPrepared(part, gid, commit, until)
      if (isDone) await first()
      return isDone
    }),
  )
  return decision.others.flatMap(({ part }, i) => (done[i] ? [] : [part.shard]))
}

async function commitPrepared(
  part: TwoPhasePart,
  gid: string,
  commit: TwoPhaseCommit,
  untilMs: number,
): Promise<boolean> {
  const run = (server: TwoPhaseServer) => finishPrepared(server, 'COMMIT', gid)
  try {
    await run(part.server)
    return true
  } catch {
    // The decision stands, so any failure here is a matter of time.
  }
  while (commit.clock.monotonicMs() < untilMs) {
    try {
      await commit.withServer(part.shard, run)
      return true
    } catch {
      await commit.clock.sleep(RETRY_MS)
    }
  }
  return false
}

/** COMMIT PREPARED or ROLLBACK PREPARED; that it is gone already is as good. */
export async function finishPrepared(
  server: TwoPhaseServer,
  verb: 'COMMIT' | 'ROLLBACK',
  gid: string,
): Promise<void> {
  try {
    await server.query(`${verb} PREPARED '${gid}'`)
  } catch (error) {
    if (refusalState(error) !== GONE) throw error
  }
}

/**
 * Rolls back everywhere before a decision. What cannot be reached is left to recovery, which finds no decision.
 * A part that was not prepared answers ROLLBACK PREPARED with an error and has then only to be rolled back.
 */
async function undo(decision: Decision, commit: TwoPhaseCommit): Promise<void> {
  await rollBack([decision.deciding, ...decision.others.map(({ part }) => part)])
  await Promise.allSettled(
    decision.others.map(async ({ part, gid }) => {
      const run = (server: TwoPhaseServer) => finishPrepared(server, 'ROLLBACK', gid)
      await run(part.server).catch(() => commit.withServer(part.shard, run))
    }),
  )
}

async function rollBack(parts: readonly TwoPhasePart[]): Promise<void> {
  await Promise.allSettled(parts.map((part) => part.server.query('ROLLBACK')))
}

/** Before a decision a lost server means that nothing was committed anywhere, which its own error could not say. */
function explain(error: unknown): Error {
  if (refusalState(error) !== undefined) return error as Error
  const known = toEngineError(error)
  if (known.code === 'TWO_PHASE_ROLLED_BACK') return known
  return engineError('TWO_PHASE_ROLLED_BACK', { reason: known.message }, { cause: error })
}

/** In the background: when it fails, recovery removes the row. */
async function forget(decision: Decision, commit: TwoPhaseCommit): Promise<void> {
  const sql = `SELECT pgshard.forget(${decision.secret})`
  await commit.withServer(decision.deciding.shard, (server) => server.query(sql)).catch(() => [])
  await commit.onStep?.('forgotten')
}
