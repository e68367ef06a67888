/** A read whose answer is merged from the rows of several servers (design §7.1). */
import { engineError, toEngineError } from '../../../errors/engine-error.js'
import type { FanOutPart } from '../../../executor/fan-out.js'
import { type MergeOutcome, MergeRun } from '../../../executor/merge-run.js'
import type { MergeProgram } from '../../../plan/merge-program.js'
import type { Plan } from '../../../plan/plan.js'
import { listShards } from '../../../sharding/shard-set.js'
import { completeFrame, errorFrame, portalSuspendedFrame } from '../../answers.js'
import type { SessionCore } from '../../session-core.js'
import type { HeldServer } from '../../state/held-servers.js'
import { PortalRows } from '../portal-rows.js'
import { checkShards, requestRole, wayMissing } from '../request-route.js'
import type { SeveralRequest } from './several-request.js'
import { noteWork } from './sharded-requests.js'

/** Runs the request; errors end it. @throws what forbids it before anything was sent */
export function runMerge(core: SessionCore, request: SeveralRequest, plan: Plan): void {
  const program = plan.merge
  if (!program) throw wayMissing(plan)
  checkTextOrder(core, program)
  const shards = listShards(plan.target, core.access.planner.shardCount)
  checkShards(core, shards, false)
  void core.held.acquireAll(shards, requestRole(core, [request.statement], [plan])).then(
    (helds) => merge(core, request, program, helds),
    (error) => core.fail(core.cancelled ? engineError('SESSION_CANCELLED') : toEngineError(error)),
  )
}

/** Outside a transaction the portal ends with its request, so that the rest is never asked for. */
function portalRows(core: SessionCore, { rowLimit }: SeveralRequest): PortalRows | undefined {
  if (rowLimit === 0 || !core.transaction.isExplicit) return undefined
  return new PortalRows(core.output, rowLimit, core.access.gatherLimits.maxBytes)
}

/** For the next Execute of the client's portal. */
export function keepRest(core: SessionCore, request: SeveralRequest, { rest }: PortalRows): void {
  const portal = core.statements.portals.get(request.portal ?? '')
  if (portal && core.transaction.isExplicit) portal.rest = rest
}

/** Encodings in which the order of the bytes is that of the code points. */
const ordered = new Set(['UTF8', 'LATIN1', 'SQL_ASCII'])

/** Text is ordered by the bytes that the client is sent. @throws MERGE_ENCODING when the servers order others */
function checkTextOrder({ told }: SessionCore, { order, sort, combine }: MergeProgram): void {
  const client = told.get('client_encoding') ?? 'UTF8'
  const server = told.get('server_encoding') ?? 'UTF8'
  if (client === server || (ordered.has(client) && ordered.has(server))) return
  if ([...order, ...(sort ?? []), ...combine].some(({ bytewise }) => bytewise)) {
    throw engineError('MERGE_ENCODING', { client, server })
  }
}

function partOf(
  core: SessionCore,
  request: SeveralRequest,
  program: MergeProgram,
  held: HeldServer,
  isFirst: boolean,
): FanOutPart {
  const prelude = core.held.prelude(held, core.transaction)
  const hidden = hiddenOf(program)
  const types = held.server.typesHere(request.parameterTypes)
  const own = [
    ...(isFirst ? [request.describingFrames(types)] : []),
    request.framesFor(program.sql, hidden, types),
  ]
  return {
    shard: held.shard,
    server: held.server,
    bytes: Buffer.concat([...prelude.bytes, ...own]),
    preludeReadies: prelude.syncs,
    preludeDone: () => {
      for (const expectation of prelude.expectations) expectation.done?.()
    },
  }
}

/** How many columns the text has behind those of the client. */
function hiddenOf({ order, combine, sort, visible, unique }: MergeProgram): number {
  const columns = [
    ...order.map(({ column }) => column),
    ...(sort ?? []).map(({ column }) => column),
    ...combine.flatMap(({ parts }) => parts),
    ...(unique ?? []),
  ]
  return visible < 0 ? 0 : Math.max(0, Math.max(-1, ...columns) + 1 - visible)
}

function merge(
  core: SessionCore,
  request: SeveralRequest,
  program: MergeProgram,
  helds: readonly HeldServer[],
): void {
  const parts = helds.map((held, index) => partOf(core, request, program, held, index === 0))
  const portal = portalRows(core, request)
  const run = new MergeRun(parts, portal ?? core.output, {
    program,
    rowLimit: portal ? 0 : request.rowLimit,
    describes: request.describesStatement,
    listens: () => core.held.pins.has('listen'),
    parameterStatus: (buffer, start, end) => core.noteStatus(buffer, start, end),
    opened: (statement, columns) => {
      core.output.append(request.opening(statement))
      if (request.describesPortal) core.output.append(columns)
    },
    stop: (why) => {
      // a cancelled statement would take the client's transaction with it
      if (why === 'enough' && core.transaction.isExplicit) return false
      core.held.cancel()
      return true
    },
    done: (outcome) => {
      for (const held of helds) {
        if (outcome.lost.includes(held.shard)) core.held.discard(held, 'connection lost')
        else held.server.receiver = held.relay
        noteWork(held, request.statement)
        if (request.protocol === 'extended') held.server.unnamed = undefined
      }
      finish(core, request, outcome, portal)
    },
  })
  core.fanOut = run
  run.start()
}

/** The client's CommandComplete or error, then ReadyForQuery. */
function finish(
  core: SessionCore,
  request: SeveralRequest,
  outcome: MergeOutcome,
  portal: PortalRows | undefined,
): void {
  const error = outcome.error ?? portal?.error
  if (error) {
    core.figures.errors++
    if (core.transaction.isExplicit) core.transaction.fail()
    core.statements.dropUnconfirmed()
    if (core.running) core.running.failed = true
    // a limit of ours has asked for the cancel
    const own = error.sqlstate === '57014' ? core.timedOut : undefined
    core.output.append(errorFrame(own ?? error, 'ERROR'))
    return core.complete()
  }
  core.figures.queries++
  if (portal) {
    keepRest(core, request, portal)
    core.conclude(portal.ending)
  } else if (outcome.isSuspended) core.output.append(portalSuspendedFrame)
  else if (request.executes) core.conclude(completeFrame(`SELECT ${outcome.rows}`))
  core.output.append(request.closing())
  core.complete()
}
