/**
 * A read that finishes over copies of its tables on one server (design §7.2, hard-parts §6): servers are found, their rows
 * copied, the client's statement is run there, and every server is left as it was.
 */
import { type EngineError, engineError, toEngineError } from '../../../errors/engine-error.js'
import { FinishReply } from '../../../gather/finish.js'
import { keysOf, wasReadable } from '../../../gather/part-sql.js'
import { analyzeSql, type Situation } from '../../../gather/plan-load.js'
import { takeInRounds } from '../../../gather/take-rounds.js'
import { type Taken, takeRows } from '../../../gather/take-rows.js'
import type { GatheredTable, GatherProgram } from '../../../plan/gather-program.js'
import type { Plan } from '../../../plan/plan.js'
import { withFixedClock } from '../../../routing/fixed-clock.js'
import { settingsDifference } from '../../../server/settings.js'
import { listShards, oneShard } from '../../../sharding/shard-set.js'
import { TX_IDLE } from '../../../wire/tags.js'
import { completeFrame, errorFrame } from '../../answers.js'
import type { SessionCore } from '../../session-core.js'
import type { HeldServer } from '../../state/held-servers.js'
import { PortalRows } from '../portal-rows.js'
import { checkShards, requestRole, wayMissing } from '../request-route.js'
import { keepRest } from './run-merge.js'
import type { SeveralRequest } from './several-request.js'

/** From so many rows on a plan without statistics may cost more than they do. */
const ANALYZE_ROWS = 10_000
/** More would make a long string of statements cost its square. */
const MOST_PADDING = 65_536

/** The servers of one gathering. */
interface Site {
  /** All that send rows, and that on which the statement finishes unless it is `apart`. */
  readonly helds: readonly HeldServer[]
  readonly finisher: HeldServer
  /** It takes no part in the client's transaction. */
  readonly isApart: boolean
  readonly tables: readonly GatheredTable[]
  readonly views: readonly { readonly name: string; readonly sql: string }[]
  readonly sql: string
}

/** Runs the request; errors end it. @throws what forbids it before anything was sent */
export function runGather(core: SessionCore, request: SeveralRequest, plan: Plan): void {
  const program = plan.gather
  if (!program) throw wayMissing(plan)
  const shards = listShards(plan.target, core.access.planner.shardCount)
  checkShards(core, shards, false)
  gather(core, request, plan, program).catch((error) => {
    if (!core.held.isClosed) core.fail(ownError(core, toEngineError(error)))
  })
}

/** A limit of ours, or a cancel while nothing ran, in the place of what came of it. */
function ownError(core: SessionCore, error: EngineError): EngineError {
  if (error.sqlstate === '57014' && core.timedOut) return core.timedOut
  const waited = core.cancelled && error.code === 'POOL_CHECKOUT_ABORTED'
  return waited ? (core.timedOut ?? engineError('SESSION_CANCELLED')) : error
}

async function gather(
  core: SessionCore,
  request: SeveralRequest,
  plan: Plan,
  program: GatherProgram,
): Promise<void> {
  const site = await openSite(core, request, plan, program)
  try {
    await Promise.all(site.helds.map((held) => prepare(core, held)))
    if (site.isApart) await prepareApart(core, site.finisher)
    const timed = await atOneTime(core, site, program)
    const taken = await take(core, timed)
    await analyzeLarge(core, timed, taken)
    await finish(core, request, timed)
  } finally {
    if (!core.held.isClosed) await leave(core, site)
  }
  if (core.held.isClosed) return
  core.complete()
}

const timeSql =
  "SELECT pg_catalog.to_char(pg_catalog.now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00'"

/** Written into the texts of another server: the time of the client's transaction, as its first server has it. */
async function atOneTime(core: SessionCore, site: Site, program: GatherProgram): Promise<Site> {
  const first = core.held.firstJoined
  if (!program.usesClock || !core.transaction.isExplicit || !first) return site
  const now = (await first.server.query(timeSql)).at(-1)?.rows[0]?.[0] ?? ''
  const fixed = (sql: string): string => {
    const text = withFixedClock(sql, program.standard, now)
    if (text === undefined) throw engineError('GATHER_CLOCK')
    return text
  }
  const views = site.views.map(({ name, sql }) => ({ name, sql: fixed(sql) }))
  return { ...site, sql: fixed(site.sql), views }
}

/** Where the statement finishes: where a table lives that stands nowhere else, else in turn. */
function chooseShard(core: SessionCore, program: GatherProgram, among: readonly number[]): number {
  const home = program.tables.find(({ livesOn }) => livesOn !== undefined)?.livesOn
  if (home !== undefined) return home
  const { shardCount } = core.access.planner
  let shard = core.nextShard()
  for (let i = 0; i < shardCount && !among.includes(shard); i++) shard = core.nextShard()
  return shard
}

/** Shards that the transaction does not use, where there are any. */
function others(core: SessionCore, shards: readonly number[]): number[] {
  const all = Array.from({ length: core.access.planner.shardCount }, (_, shard) => shard)
  const free = all.filter((shard) => !shards.includes(shard) && !core.held.get(shard))
  return free.length > 0 ? free : all
}

/** What a transaction or a pinned session has there must not meet the copies. @throws GATHER_LOCKED: it would wait for the client's own lock, for ever */
function finishesApart({ transaction, held }: SessionCore): boolean {
  const isApart = transaction.isExplicit || held.pins.size > 0
  if (isApart && transaction.locksTables) throw engineError('GATHER_LOCKED')
  return isApart
}

async function openSite(
  core: SessionCore,
  request: SeveralRequest,
  plan: Plan,
  program: GatherProgram,
): Promise<Site> {
  const { held, transaction, access } = core
  const shards = listShards(plan.target, access.planner.shardCount)
  const role = requestRole(core, [request.statement], [plan])
  const isApart = finishesApart(core)
  const shard = chooseShard(core, program, isApart ? others(core, shards) : shards)
  const helds: HeldServer[] = []
  for (const one of shards) {
    helds.push(await held.acquire(one, !isApart && one === shard ? 'primary' : role))
  }
  const own = helds.find((one) => one.shard === shard)
  const finisher = isApart || !own ? await held.acquireApart(shard) : own
  const hasWritten = transaction.isExplicit && held.all().some((one) => one.joined && one.wrote)
  const copiesReferences = hasWritten || transaction.needsOneSnapshot
  const references = copiesReferences ? program.references : []
  const from = helds[0]?.shard ?? 0
  const copied = references.map((table) => ({ ...table, shards: oneShard(from) }))
  return {
    helds,
    finisher,
    isApart: finisher !== own,
    tables: [...program.tables, ...copied],
    views: copiesReferences
      ? program.views.map(({ name, sqlWithReferences: sql }) => ({ name, sql }))
      : program.views,
    sql: copiesReferences ? program.sqlWithReferences : program.sql,
  }
}

/** Settings and BEGIN, answered before anything else is asked: a role that is refused must not be read past. */
async function prepare(core: SessionCore, held: HeldServer): Promise<void> {
  const prelude = core.held.prelude(held, core.transaction)
  if (prelude.syncs === 0) return
  await tell(held, Buffer.concat(prelude.bytes), prelude.syncs)
  for (const expectation of prelude.expectations) expectation.done?.()
}

async function tell(held: HeldServer, bytes: Buffer, syncs: number): Promise<void> {
  try {
    await held.server.ask(bytes, syncs)
  } catch (error) {
    held.server.tainted = true
    throw error
  }
}

/** The settings that the client's statement would see now. */
async function prepareApart(core: SessionCore, { server }: HeldServer): Promise<void> {
  const wanted = core.transaction.effective
  const sql = settingsDifference(server.settings, wanted)
  if (sql === '') return
  try {
    await server.query(sql)
    server.settings = wanted
  } catch (error) {
    server.tainted = true
    throw error
  }
}

async function take(core: SessionCore, site: Site): Promise<Taken> {
  const { helds, finisher, isApart, tables, views } = site
  const { transaction, access } = core
  const situation: Situation = {
    shardCount: access.planner.shardCount,
    ...(isApart ? {} : { ownShard: finisher.shard }),
    snapshot: !transaction.isExplicit
      ? 'none'
      : transaction.needsOneSnapshot
        ? 'transaction'
        : 'statement',
    settings: transaction.effective,
  }
  const serverOf = (shard: number) => {
    const held = helds.find((one) => one.shard === shard)
    if (!held) throw engineError('INTERNAL', { message: `no server of shard ${shard} was taken` })
    return held.server
  }
  const taken = await takeInRounds(tables, views, situation, {
    keysOf: async (joined) => {
      const [result] = (await finisher.server.query(keysOf(joined))).slice(-1)
      const keys = result?.rows[0]?.[0]
      const encoding = finisher.server.parameters.get('client_encoding')
      return keys && !wasReadable(keys, encoding) ? undefined : keys
    },
    take: ({ loadSql, formats, sources }, before) =>
      takeRows({
        ...{ finisher: finisher.server, loadSql, formats, before, limits: access.gatherLimits },
        sources: sources.map((source) => ({ ...source, server: serverOf(source.shard) })),
        failed: () => core.held.cancel(),
      }),
  })
  if (transaction.isExplicit) for (const held of helds) held.worked = true
  return taken
}

async function analyzeLarge(
  core: SessionCore,
  { finisher, tables }: Site,
  { rows }: Taken,
): Promise<void> {
  if (rows < ANALYZE_ROWS) return
  await finisher.server.query(analyzeSql(tables, core.transaction.effective))
}

/** Where the statement stood in its text, so that positions of errors are the client's. */
const padded = (sql: string, { statement }: SeveralRequest): string =>
  statement.start > MOST_PADDING ? sql : ' '.repeat(statement.start) + sql

async function finish(core: SessionCore, request: SeveralRequest, site: Site): Promise<void> {
  const { server } = site.finisher
  server.unnamed = undefined
  const types = server.typesHere(request.parameterTypes)
  const sql = padded(site.sql, request)
  const frames = [request.describingFrames(types), request.framesFor(sql, 0, types)]
  const { isExplicit } = core.transaction
  const maxBytes = isExplicit ? core.access.gatherLimits.maxBytes : 0
  const portal =
    request.rowLimit > 0 ? new PortalRows(core.output, request.rowLimit, maxBytes) : undefined
  const reply = new FinishReply({
    server,
    output: portal ?? core.output,
    wholeRows: portal !== undefined,
    frames: Buffer.concat(frames),
    describesStatement: request.describesStatement,
    describesPortal: request.describesPortal,
    isExtended: request.protocol === 'extended',
    executes: request.executes,
    opening: (description) => request.opening(description),
    failed: () => failed(core),
  })
  core.fanOut = reply
  const { tag, lost } = await reply.start()
  if (lost) throw lost
  if (tag === undefined) return
  if (portal?.error) throw portal.error
  if (portal) keepRest(core, request, portal)
  core.figures.queries++
  if (request.executes) core.conclude(portal?.ending ?? completeFrame(tag))
  core.output.append(request.closing())
}

/** Books of a statement whose error the finishing server has told. */
function failed(core: SessionCore): Buffer | undefined {
  core.figures.errors++
  if (core.running) core.running.failed = true
  core.statements.dropUnconfirmed()
  if (core.transaction.isExplicit) core.transaction.fail()
  else core.transaction.undoImplicit()
  return core.timedOut ? errorFrame(core.timedOut, 'ERROR') : undefined
}

/** Every server as it was before: no transaction of ours, no copies. */
async function leave(core: SessionCore, { helds, finisher, isApart }: Site): Promise<void> {
  const apart = isApart ? [finisher] : []
  await Promise.all(apart.map((held) => rollBack(core, held)))
  if (!core.transaction.isExplicit) await Promise.all(helds.map((held) => rollBack(core, held)))
  for (const held of [...helds, ...apart]) {
    if (core.held.get(held.shard) !== held) continue
    if (held.server.closed) core.held.discard(held, 'connection lost')
    else if (apart.includes(held)) core.held.release(held)
    else held.server.receiver = held.relay
  }
}

/** A cancel that comes late may still hit the first ROLLBACK. */
async function rollBack(core: SessionCore, held: HeldServer): Promise<void> {
  const { server } = held
  for (let tries = 0; tries < 2 && server.status !== TX_IDLE && !server.closed; tries++) {
    await server.query('ROLLBACK').catch(() => undefined)
  }
  if (server.status === TX_IDLE && !server.closed) return
  if (core.held.get(held.shard) === held) core.held.discard(held, 'could not be left clean')
}
