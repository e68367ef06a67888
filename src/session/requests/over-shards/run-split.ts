/**
 * A write in parts, each with a text of its own for its shard, in one transaction: the client's, or one of ours that is
 * committed before the client hears of success. Values that only a server can compute are asked for first.
 */
import { type EngineError, engineError, toEngineError } from '../../../errors/engine-error.js'
import type { WriteReply } from '../../../executor/write-run.js'
import type { Plan } from '../../../plan/plan.js'
import type { SplitPart, SplitProgram } from '../../../plan/split-program.js'
import { completeFrame, noDataFrame } from '../../answers.js'
import type { SessionCore } from '../../session-core.js'
import type { HeldServer } from '../../state/held-servers.js'
import { runInTransaction } from '../implicit-transaction.js'
import { checkOpenKeys, checkShards } from '../request-route.js'
import type { SeveralRequest } from './several-request.js'
import {
  addedTag,
  askServer,
  bookWrite,
  checkPortal,
  describedOn,
  runOnServers,
} from './write-parts.js'

/** Runs it; the request ends by the core, now or later. May throw before anything was sent. */
export function runSplit(core: SessionCore, request: SeveralRequest, { split }: Plan): void {
  if (!split) throw engineError('INTERNAL', { message: 'a split without a program' })
  checkPortal(request, split.returns)
  ending(core, async () => {
    const program = split.draw ? await drawn(core, split) : split
    if (program.parts.length === 1) await writeParts(core, request, program)
    else runInTransaction(core, () => ending(core, () => writeParts(core, request, program)))
  })
}

/** An error of the work ends the request. */
export function ending(core: SessionCore, work: () => Promise<void>): void {
  work().catch((error: unknown) => core.fail(orCancelled(core, toEngineError(error))))
}

const orCancelled = (core: SessionCore, error: EngineError): EngineError =>
  core.cancelled && error.code !== 'SERVER_SAID_NO'
    ? (core.timedOut ?? engineError('SESSION_CANCELLED'))
    : error

/** The program once a server has computed what it needs: the one whose transaction the client's is, else shard 0. */
export async function drawn(core: SessionCore, program: SplitProgram): Promise<SplitProgram> {
  const { draw } = program
  if (!draw) return program
  const joined = core.held.all().filter((held) => held.joined)
  const lead = joined[0] ?? (await core.held.acquire(0, 'primary'))
  return draw.finish(await askServer(core, lead, draw))
}

async function writeParts(
  core: SessionCore,
  request: SeveralRequest,
  program: SplitProgram,
): Promise<void> {
  const { parts } = program
  const shards = parts.map((part) => part.shard)
  checkOpenKeys(core)
  checkShards(core, shards, true)
  const isCut = shards.length > 1 && request.statement.kind === 'insert'
  if (isCut && !core.access.rewrites.splitsInserts) throw engineError('WRITE_SPLIT_OFF')
  const helds = await core.held.acquireAll(shards, 'primary')
  const types = await typesFor(core, request, program, helds)
  const texts = helds.map((held, i) => ({
    held,
    bytes: bytesOf(request, parts[i] as SplitPart, held.server.typesHere(types), i === 0),
  }))
  const replies = await runOnServers(core, texts, core.access.planner.shardCount)
  const tag = addedTag(replies.map((reply) => reply.tag))
  bookWrite(core, request, helds, tag)
  answerWrite(core, request, { tag, lead: replies[0], rows: rowsInOrder(replies, program) })
}

async function typesFor(
  core: SessionCore,
  request: SeveralRequest,
  { needsTypes }: SplitProgram,
  [lead]: readonly HeldServer[],
): Promise<readonly number[]> {
  const isOpen =
    request.parameters && request.parameters.count > request.parameterTypes.filter(Boolean).length
  if (!needsTypes || !lead || !isOpen) return request.parameterTypes
  return (await describedOn(core, lead, request)).types
}

/** The client's Describe of the statement is answered by the first. */
export function bytesOf(
  request: SeveralRequest,
  part: SplitPart,
  types: readonly number[],
  isLead: boolean,
): Buffer {
  const frames = request.framesFor(part.sql, 0, types)
  return isLead ? Buffer.concat([request.describingFrames(types), frames]) : frames
}

/** Rows of RETURNING as one PostgreSQL gives them: where each row of VALUES gave one, in the order of VALUES. */
function rowsInOrder(replies: readonly WriteReply[], { owners }: SplitProgram): readonly Buffer[] {
  const rows = replies.map((reply) => reply.rows)
  const total = rows.reduce((sum, own) => sum + own.length, 0)
  if (!owners || owners.length !== total) return rows.flat()
  const next = rows.map(() => 0)
  return owners.map((part) => rows[part]?.[next[part]!++]).filter((row) => row !== undefined)
}

/** The whole answer but ReadyForQuery. */
export function answerWrite(
  core: SessionCore,
  request: SeveralRequest,
  answer: {
    readonly tag: string
    readonly lead: WriteReply | undefined
    readonly rows: readonly Buffer[]
  },
): void {
  const { lead, rows, tag } = answer
  const opening = request.opening(lead?.statement)
  if (opening.length > 0) core.output.append(opening)
  const columns = columnsFor(request, lead?.columns)
  if (columns) core.output.append(columns)
  for (const row of rows) core.output.append(row)
  core.conclude(completeFrame(tag))
  const closing = request.closing()
  if (closing.length > 0) core.output.append(closing)
  core.complete()
}

function columnsFor(request: SeveralRequest, columns: Buffer | undefined): Buffer | undefined {
  if (request.protocol === 'extended') {
    return request.describesPortal ? (columns ?? noDataFrame) : undefined
  }
  return columns?.[0] === 0x54 ? columns : undefined
}
