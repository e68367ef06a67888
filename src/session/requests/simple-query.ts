/**
 * The simple protocol: one Query, possibly of several statements, answered here, by one server, or by several.
 * @see PostgreSQL documentation, "Simple Query"
 */
import { type EngineError, engineError } from '../../errors/engine-error.js'
import type { Expectation } from '../../executor/relay.js'
import type { Plan, PlannedQuery, PlannedStatement } from '../../plan/plan.js'
import { queryFrame } from '../../server/server-connection.js'
import { emptyQueryFrame } from '../answers.js'
import { hearFirst } from '../listen/hear-first.js'
import { answerChannels, refusePrepare } from '../listen/listening-channels.js'
import { channelsOf, silenceListen } from '../listen/silent-listen.js'
import { noteSeveral, noteShard } from '../request-books.js'
import type { SessionCore } from '../session-core.js'
import { completedOf } from '../state/apply-effects.js'
import type { HeldServer } from '../state/held-servers.js'
import { lendNames } from '../state/lent-names.js'
import { withSnapshots } from '../state/one-snapshot.js'
import { errorOfOwnText, heardQuery } from '../state/startup-resets.js'
import { afterRequest } from './after-request.js'
import { parseFrame, syncFrame } from './batch.js'
import { runInTransaction, runScript } from './implicit-transaction.js'
import { answerLocally, simpleFrames } from './local-answer.js'
import { runEverywhere } from './over-shards/run-everywhere.js'
import { runExplain } from './over-shards/run-explain.js'
import { runGather } from './over-shards/run-gather.js'
import { runMerge } from './over-shards/run-merge.js'
import { runSplitPlan } from './over-shards/run-split-plan.js'
import { SeveralRequest } from './over-shards/several-request.js'
import type { ShardedRequests } from './over-shards/sharded-requests.js'
import {
  areForOneShard,
  checkCursors,
  checkEncoding,
  checkStrings,
  keepMeanings,
  refusal,
  requestRole,
  shardOf,
} from './request-route.js'
import { isOutdated } from './send-again.js'

/** Runs `text`; `frame` is its Query message, borrowed for the call. */
export function runSimpleQuery(
  core: SessionCore,
  sharded: ShardedRequests,
  text: string,
  frame: Buffer,
): void {
  const query = core.access.planner.plan(text)
  core.statements.dropUnnamed()
  core.begin('simple', [])
  runQuery(core, sharded, query, frame)
}

function runQuery(
  core: SessionCore,
  sharded: ShardedRequests,
  query: PlannedQuery,
  frame: Buffer,
): void {
  const { text } = query
  const channels = core.access.listen ? channelsOf(query.statements) : []
  if (channels.length === 0) return runPlanned(core, sharded, query, frame)
  try {
    checkEncoding(core, frame.subarray(5))
  } catch (error) {
    return core.fail(error as EngineError)
  }
  const silent = silenceListen(query)
  hearFirst(core, channels, () => runPlanned(core, sharded, silent, queryFrame(silent.text), text))
}

/** Runs a query; `original` is what the client sent, when it is not what is run. */
function runPlanned(
  core: SessionCore,
  sharded: ShardedRequests,
  query: PlannedQuery,
  frame: Buffer,
  original?: string,
): void {
  const { text } = query
  if (query.syntaxError) return relayUnreadable(core, text, frame)
  if (query.statements.length === 0) return core.answer(emptyQueryFrame)
  const only = query.statements.length === 1 ? query.statements[0] : undefined
  try {
    refuseInStatementMode(core, query)
    const channels = answerChannels(core, text)
    if (channels) return core.answer(channels)
    refusePrepare(core, query.statements)
    const local = only && answerLocally(core, only, text)
    if (local) return core.answer(simpleFrames(local))
    if (core.isSharded) runSharded(core, sharded, query, only, frame)
    else if (core.transaction.failedByUs) {
      // the server may think the transaction sound, and would go on with it
      if (!only || !sharded.runControl(only, text, frame)) throw engineError('SESSION_ABORTED')
    } else relay(core, 0, requestRole(core, query.statements), query, frame)
    if (original === undefined) repeatable(core, sharded, text, frame)
    else repeatable(core, sharded, original, queryFrame(original))
  } catch (error) {
    core.fail(error as EngineError)
  }
}

/** Statement pooling gives every statement a server of its own, so there is nothing that a transaction could hold on to. */
function refuseInStatementMode(core: SessionCore, query: PlannedQuery): void {
  if (core.access.poolerMode !== 'statement') return
  if (query.statements.length > 1 || query.statements.some((one) => one.effects.transaction)) {
    throw engineError('SESSION_STATEMENT_MODE')
  }
}

/** Runs `text` again from its beginning when the shards change while it waits. */
function repeatable(
  core: SessionCore,
  sharded: ShardedRequests,
  text: string,
  frame: Buffer,
): void {
  if ((!core.held.isWaiting && !core.sendAgain.isOn) || !core.running) return
  const owned = Buffer.from(frame)
  // A Query of several statements has said so itself.
  if (core.script) return core.script.repeatBy(() => runSimpleQuery(core, sharded, text, owned))
  core.sendAgain.keep(() => runSimpleQuery(core, sharded, text, owned))
}

function runSharded(
  core: SessionCore,
  sharded: ShardedRequests,
  query: PlannedQuery,
  only: PlannedStatement | undefined,
  frame: Buffer,
): void {
  checkEncoding(core, frame.subarray(5))
  checkStrings(core, frame.subarray(5))
  if (only && sharded.runControl(only, query.text, frame)) return
  const bytes = core.transaction.needsOneSnapshot ? Buffer.from(frame) : frame
  withSnapshots(core, requestRole(core, query.statements), () => {
    if (only) runByPlan(core, sharded, query, only, bytes)
    else runString(core, sharded, query, bytes)
  })
}

function runByPlan(
  core: SessionCore,
  sharded: ShardedRequests,
  query: PlannedQuery,
  only: PlannedStatement,
  frame: Buffer,
): void {
  const plan = only.route(undefined, core.routeContext(undefined, only))
  noteSeveral(core.running, plan, only)
  switch (plan.how) {
    case 'relay':
      return relayPlanned(core, [plan], query, frame)
    case 'copy':
      return sharded.copyIn(only, plan, query.text)
    case 'concatenate': {
      const scatter = () => sharded.scatter(only, plan, query.text)
      return only.isRead ? scatter() : runInTransaction(core, scatter)
    }
    case 'gather':
      return runGather(core, SeveralRequest.ofQuery(only, query.text), plan)
    case 'split':
      return runSplitPlan(core, SeveralRequest.ofQuery(only, query.text), plan)
    case 'everywhere':
      return runEverywhere(core, SeveralRequest.ofQuery(only, query.text), plan)
    case 'merge':
      return runMerge(core, SeveralRequest.ofQuery(only, query.text), plan)
    case 'explain':
      return runExplain(core, SeveralRequest.ofQuery(only, query.text), plan)
    case 'refuse':
      throw refusal(plan, core)
  }
}

/** Several statements: whole to one shard when all are for it, else one after the other. */
function runString(
  core: SessionCore,
  sharded: ShardedRequests,
  query: PlannedQuery,
  frame: Buffer,
): void {
  const plans = plansForOne(core, sharded, query)
  if (plans) return relayPlanned(core, plans, query, frame)
  const { text } = query
  const owned = Buffer.from(frame)
  runScript(
    core,
    query.statements.map(({ start, end }) => () => {
      const own = aloneInPlace(text, start, end)
      runQuery(core, sharded, core.access.planner.plan(own), queryFrame(own))
    }),
    { again: () => runSimpleQuery(core, sharded, text, owned) },
  )
}

/** More would make a long string of statements cost its square. */
const MOST_PADDING = 65_536

/** One statement of a string, where it stood, so that a server counts the positions of errors as the client does. */
const aloneInPlace = (text: string, start: number, end: number): string => {
  const statement = text.slice(start, end)
  return start > MOST_PADDING ? statement : ' '.repeat([...text.slice(0, start)].length) + statement
}

/** Plans of a string whose statements are all for one shard and mean what they say; else undefined. */
function plansForOne(
  core: SessionCore,
  sharded: ShardedRequests,
  query: PlannedQuery,
): Plan[] | undefined {
  const { statements } = query
  if (core.transaction.phase === 'failed') return undefined
  if (!keepMeanings(statements, (statement) => sharded.isNeutral(statement))) return undefined
  const plans: Plan[] = []
  for (const statement of statements) {
    if (sharded.isNeutral(statement)) continue
    const plan = statement.route(undefined, core.routeContext(undefined, statement))
    if (plan.how !== 'relay') return undefined
    plans.push(plan)
  }
  return areForOneShard(core, statements, plans) ? plans : undefined
}

function relayPlanned(core: SessionCore, plans: Plan[], query: PlannedQuery, frame: Buffer): void {
  const shard = shardOf(core, plans)
  checkCursors(core, query.statements, shard)
  relay(core, shard, requestRole(core, query.statements, plans), query, frame)
}

function relay(
  core: SessionCore,
  shard: number,
  role: 'primary' | 'any',
  query: PlannedQuery,
  frame: Buffer,
): void {
  const only = query.statements.length === 1 ? query.statements[0] : undefined
  noteShard(core.running, query.statements, shard)
  const { generation } = core.access.planner
  const unread = (bytes: Buffer) => {
    const text = bytes.toString('utf8', 5, bytes.length - 1)
    runAlone.call({ core, shard, role, generation, query: core.access.planner.plan(text) }, bytes)
  }
  const request = { shard, role, query, core, generation, alone: runAlone, unread }
  if (only && core.pipelined.runQuery(only, frame, request)) return
  relayAlone(core, shard, role, query, frame)
}

/** What was to be pipelined gets a server of its own. */
function runAlone(this: PipelinableQuery, bytes: Buffer): void {
  this.core.again = () => this.core.hooks.runAgain(bytes)
  if (isOutdated(this.core, this.generation)) return
  relayAlone(this.core, this.shard, this.role, this.query, bytes)
}

interface PipelinableQuery {
  readonly core: SessionCore
  readonly shard: number
  readonly role: 'primary' | 'any'
  /** Of the planner that chose the shard: it may have been exchanged while the request stood in line. */
  readonly generation: number | undefined
  readonly query: PlannedQuery
}

function relayAlone(
  core: SessionCore,
  shard: number,
  role: 'primary' | 'any',
  query: PlannedQuery,
  frame: Buffer,
): void {
  let bytes = frame
  let sent = false
  core.withShard(shard, role, (held) => {
    sent = true
    sendQuery(core, held, query, bytes)
  })
  if (!sent) bytes = Buffer.from(frame)
}

function sendQuery(core: SessionCore, held: HeldServer, query: PlannedQuery, frame: Buffer): void {
  const { startup } = core.transaction
  const completed = query.statements.map((one) => completedOf(one, query.text, startup))
  core.running?.statements.push(...completed)
  lendNames(core, held, query.statements)
  held.server.unnamed = undefined
  const heard = heardQuery(query, startup)
  const after = afterRequest(core, held, query.statements)
  const expectation: Expectation = {
    kind: 'query',
    holdsReady: after.pieces.length > 0,
    ...(heard ? { reworded: (error: Buffer) => errorOfOwnText(error, heard.edits) } : {}),
  }
  const bytes = heard ? queryFrame(heard.text) : frame
  if (after.pieces.length === 0) return core.send(held, [bytes], [expectation], 1)
  const { pieces, expectations } = after
  core.send(held, [bytes, ...pieces], [expectation, ...expectations], 1 + pieces.length)
}

/** hard-parts §5: a server says what is wrong with a text that the parser rejects; with several shards it only parses it. */
function relayUnreadable(core: SessionCore, text: string, frame: Buffer): void {
  const shard = core.held.first?.shard ?? 0
  const owned = Buffer.from(frame)
  if (core.transaction.phase === 'failed' && core.isSharded) {
    return core.fail(engineError('SESSION_ABORTED'))
  }
  core.withShard(shard, 'primary', (held) => {
    held.server.unnamed = undefined
    if (!core.isSharded) return core.send(held, [owned], [{ kind: 'query' }], 1)
    core.send(
      held,
      [parseFrame('', text, []), syncFrame],
      [
        {
          kind: 'parse',
          skip: true,
          done: () => core.refuseAfterwards(engineError('SESSION_NEWER_SYNTAX')),
        },
        { kind: 'sync' },
      ],
      1,
    )
  })
}

/** The function call protocol. Runs on shard 0: function OIDs mean nothing anywhere else. */
export function runFunctionCall(core: SessionCore, frame: Buffer): void {
  core.begin('simple', [])
  if (core.isSharded) return core.fail(engineError('SESSION_FUNCTION_CALL'))
  core.withShard(0, 'primary', (held) => {
    held.server.tainted = true
    core.send(held, [frame], [{ kind: 'query' }], 1)
  })
}
