/**
 * A statement that every shard runs with the same outcome: DDL and its kin, writes of reference tables. The first shard runs
 * it alone, so that two of them wait for each other there and not crosswise, and what is wrong with it is heard before the
 * others are touched. Together they are one transaction, but for what PostgreSQL runs outside of transactions only.
 */
import { type EngineError, engineError, toEngineError } from '../../../errors/engine-error.js'
import type { WriteReply } from '../../../executor/write-run.js'
import type { Plan } from '../../../plan/plan.js'
import type { EverywhereProgram, SplitPart, SplitProgram } from '../../../plan/split-program.js'
import { listShards } from '../../../sharding/shard-set.js'
import type { SessionCore } from '../../session-core.js'
import type { HeldServer } from '../../state/held-servers.js'
import { runInTransaction } from '../implicit-transaction.js'
import { checkShards, isOfPipeline } from '../request-route.js'
import { answerWrite, bytesOf, drawn, ending } from './run-split.js'
import type { SeveralRequest } from './several-request.js'
import { askServer, bookWrite, checkPortal, runOnServers } from './write-parts.js'

/** Runs it; the request ends by the core, now or later. May throw before anything was sent. */
export function runEverywhere(core: SessionCore, request: SeveralRequest, plan: Plan): void {
  const program = plan.everywhere
  if (!program)
    throw engineError('INTERNAL', { message: 'a plan for everywhere without a program' })
  checkPortal(request, program.returns)
  const { transaction } = core
  const isInBlock = transaction.isExplicit && !isOfPipeline(core)
  if (request.statement.kind === 'lock' && !isInBlock) {
    throw engineError('SESSION_ONLY_IN_BLOCK', { what: 'LOCK TABLE' })
  }
  const shards = listShards(plan.target, core.access.planner.shardCount)
  if (program.outsideTransaction && !transaction.isExplicit) {
    return ending(core, () => oneByOne(core, request, shards))
  }
  ending(core, async () => {
    const split = await textsFor(core, request, program, shards)
    if (shards.length === 1) await together(core, request, program, split)
    else runInTransaction(core, () => ending(core, () => together(core, request, program, split)))
  })
}

async function textsFor(
  core: SessionCore,
  request: SeveralRequest,
  { split, returns }: EverywhereProgram,
  shards: readonly number[],
): Promise<SplitProgram> {
  if (split) return drawn(core, split)
  return { parts: shards.map((shard) => ({ shard, sql: request.sql })), returns }
}

async function together(
  core: SessionCore,
  request: SeveralRequest,
  program: EverywhereProgram,
  { parts }: SplitProgram,
): Promise<void> {
  const shards = parts.map((part) => part.shard)
  checkShards(core, shards, true)
  const helds = await core.held.acquireAll(shards, 'primary')
  const texts = helds.map((held, i) => ({
    held,
    bytes: bytesOf(
      request,
      parts[i] as SplitPart,
      held.server.typesHere(request.parameterTypes),
      i === 0,
    ),
  }))
  const [lead] = await runOnServers(core, texts.slice(0, 1), shards.length)
  const others = await runOnServers(core, texts.slice(1), shards.length, true)
  if (program.sameCount) compareCounts(lead as WriteReply, others)
  await runAfterwards(core, program, helds)
  const tag = lead?.tag ?? ''
  bookWrite(core, request, helds, tag)
  await schemaRead(core, request)
  answerWrite(core, request, { tag, lead, rows: lead?.rows ?? [] })
}

const countOf = (tag: string): string => /(\d+)$/.exec(tag)?.[1] ?? ''

/** @throws WRITE_COUNTS_DIFFER */
function compareCounts(lead: WriteReply, others: readonly WriteReply[]): void {
  const expected = countOf(lead.tag)
  const other = others.find((reply) => countOf(reply.tag) !== expected)
  if (!other) return
  throw engineError('WRITE_COUNTS_DIFFER', {
    shard: other.shard,
    count: countOf(other.tag),
    first: lead.shard,
    expected,
  })
}

async function runAfterwards(
  core: SessionCore,
  { afterwards }: EverywhereProgram,
  helds: readonly HeldServer[],
): Promise<void> {
  if (!afterwards) return
  const count = core.access.planner.shardCount
  for (const held of helds) {
    await askServer(core, held, { sql: afterwards(held.shard, count), count: 0 })
  }
}

/** Others, and this client's next statement, shall find what was made; inside a transaction only its end makes it known. */
async function schemaRead(core: SessionCore, { statement }: SeveralRequest): Promise<void> {
  if (statement.effects.changesSchema && !core.transaction.isExplicit) {
    await core.access.schemaChanged()
  }
}

/** Shard after shard, each for itself: what has run stays, and a failure says where. */
async function oneByOne(
  core: SessionCore,
  request: SeveralRequest,
  shards: readonly number[],
): Promise<void> {
  const done: number[] = []
  let lead: WriteReply | undefined
  const helds: HeldServer[] = []
  for (const shard of shards) {
    try {
      const held = await core.held.acquire(shard, 'primary')
      helds.push(held)
      const part = { shard, sql: request.sql }
      const types = held.server.typesHere(request.parameterTypes)
      const bytes = bytesOf(request, part, types, done.length === 0)
      const [reply] = await runOnServers(core, [{ held, bytes }], shards.length)
      lead ??= reply
      done.push(shard)
    } catch (error) {
      await core.access.schemaChanged()
      throw partly(request, toEngineError(error), shard, done, shards)
    }
  }
  bookWrite(core, request, helds, lead?.tag ?? '')
  await schemaRead(core, request)
  answerWrite(core, request, { tag: lead?.tag ?? '', lead, rows: lead?.rows ?? [] })
}

/** With nothing done it is the server's own error. */
function partly(
  request: SeveralRequest,
  error: EngineError,
  shard: number,
  done: readonly number[],
  shards: readonly number[],
): EngineError {
  if (done.length === 0) return error
  const verb = request.sql.trim().split(/\s+/).slice(0, 2).join(' ').toUpperCase()
  const left = shards.filter((one) => !done.includes(one))
  return engineError(
    'WRITE_PARTLY_DONE',
    { verb, shard, reason: error.message },
    {
      cause: error,
      detail: `it has run on shard ${done.join(', ')}, and not on shard ${left.join(', ')}`,
    },
  )
}
