/**
 * An UPDATE of the sharding key, in one transaction: the rows are locked and their new keys computed; those that stay are
 * updated, the others taken out, and put in on the shards of their new keys.
 */
import { engineError } from '../../../errors/engine-error.js'
import type { WriteReply } from '../../../executor/write-run.js'
import type { MoveProgram } from '../../../plan/move-program.js'
import type { Plan } from '../../../plan/plan.js'
import { decodeDataRow } from '../../../wire/backend-messages.js'
import type { SessionCore } from '../../session-core.js'
import type { HeldServer } from '../../state/held-servers.js'
import { runInTransaction } from '../implicit-transaction.js'
import { checkOpenKeys, checkShards } from '../request-route.js'
import { type CarriedRow, cutRows, insertCarried } from './carried-rows.js'
import { answerWrite, ending } from './run-split.js'
import type { SeveralRequest } from './several-request.js'
import { askServer, bookWrite, checkPortal, describedOn, runOnServers } from './write-parts.js'

/** A row by the table that holds it and its place there. */
interface LockedRow {
  readonly table: string
  readonly ctid: string
  readonly key: Buffer | null
}

interface Sorted {
  readonly held: HeldServer
  readonly staying: readonly LockedRow[]
  readonly leaving: readonly LockedRow[]
}

/** Runs it; the request ends by the core, now or later. May throw before anything was sent. */
export function runMove(core: SessionCore, request: SeveralRequest, plan: Plan): void {
  const program = plan.move
  if (!program) throw engineError('INTERNAL', { message: 'a move of rows without a program' })
  checkPortal(request, program.returns)
  runInTransaction(core, () => ending(core, () => move(core, request, program)))
}

const valuesOf = (frame: Buffer): (Buffer | null)[] => decodeDataRow(frame.subarray(5))

async function move(core: SessionCore, request: SeveralRequest, told: MoveProgram): Promise<void> {
  checkOpenKeys(core)
  checkShards(core, told.shards, true)
  const helds = await core.held.acquireAll(told.shards, 'primary')
  const lead = helds[0] as HeldServer
  // what is wrong with the client's text is said before a row is touched
  const { statement, types } = await describedOn(core, lead, request)
  const program = told.withClock ? told.withClock(await timeOf(core, lead)) : told
  const sorted = await lockRows(core, request, program, helds, types)
  if (!core.access.rewrites.movesRows && sorted.some(({ leaving }) => leaving.length > 0))
    throw engineError('WRITE_MOVES_OFF', { table: program.table })
  const taken = await removeRows(core, request, program, sorted, types)
  const updated = await updateRows(core, request, program, sorted, types)
  const { replies, targets } = await putRows(core, request, program, taken)
  const stayed = sorted.reduce((sum, { staying }) => sum + staying.length, 0)
  const tag = `UPDATE ${stayed + taken.length}`
  const all = [...new Set([...helds, ...targets])]
  bookWrite(core, request, all, tag)
  const shown = program.checksKey ? undefined : updated[0]?.columns
  answerWrite(core, request, {
    tag,
    lead: { shard: lead.shard, rows: [], columns: shown, statement, tag },
    rows: program.returns ? [...updated, ...replies].flatMap(({ rows }) => rows) : [],
  })
}

async function timeOf(core: SessionCore, lead: HeldServer): Promise<string> {
  const [result] = await askServer(core, lead, { sql: 'SELECT pg_catalog.now()', count: 1 })
  return result?.rows[0]?.[0] ?? ''
}

async function lockRows(
  core: SessionCore,
  request: SeveralRequest,
  program: MoveProgram,
  helds: readonly HeldServer[],
  types: readonly number[],
): Promise<Sorted[]> {
  const bytes = request.asking(program.lockSql, types, [0, 0, 0, 1])
  const texts = helds.map((held) => ({ held, bytes }))
  const replies = await runOnServers(core, texts, core.access.planner.shardCount)
  return helds.map((held, i) => {
    const rows = lockedRows(program, replies[i] as WriteReply)
    const isHome = ({ key }: LockedRow): boolean => {
      checkEncoding(core, program, key)
      return (program.placeKey(key) ?? held.shard) === held.shard
    }
    const staying = rows.filter(isHome)
    return { held, staying, leaving: rows.filter((row) => !staying.includes(row)) }
  })
}

/** A row that is joined with several others comes more than once. @throws WRITE_MOVED_ROWS */
function lockedRows(program: MoveProgram, reply: WriteReply): LockedRow[] {
  const rows = new Map<string, LockedRow>()
  for (const frame of reply.rows) {
    const [table, ctid, isOther, key] = valuesOf(frame)
    const row = { table: String(table), ctid: String(ctid), key: key ?? null }
    if (!program.isPartitioned && String(isOther) === 't') {
      throw refusedRows(program, 'it has child tables')
    }
    const id = `${row.table} ${row.ctid}`
    const known = rows.get(id)
    if (!known) rows.set(id, row)
    else if (!sameKey(known.key, row.key)) {
      throw refusedRows(
        program,
        'a row is joined with several others, which give it different keys',
      )
    }
  }
  return [...rows.values()]
}

const sameKey = (a: Buffer | null, b: Buffer | null): boolean =>
  a === null || b === null ? a === b : a.equals(b)

const refusedRows = ({ table }: MoveProgram, reason: string): Error =>
  engineError('WRITE_MOVED_ROWS', { table, reason })

/** Text is placed by its UTF-8. @throws WRITE_MOVED_ROWS */
function checkEncoding({ told }: SessionCore, program: MoveProgram, key: Buffer | null): void {
  if (!program.keyIsText || !key?.some((byte) => byte >= 128)) return
  const encoding = told.get('client_encoding') ?? 'UTF8'
  if (encoding !== 'UTF8') throw refusedRows(program, `keys are sent in encoding ${encoding}`)
}

/** A condition that holds for these rows only. */
function naming({ rowId, isPartitioned }: MoveProgram, rows: readonly LockedRow[]): string {
  const list = (some: readonly LockedRow[]): string => {
    const places = some.map(({ ctid }) => `"${ctid}"`).join(',')
    return `${rowId.ctid} = ANY ('{${places}}'::pg_catalog.tid[])`
  }
  if (!isPartitioned || rows.length === 0) return list(rows)
  const tables = [...new Set(rows.map(({ table }) => table))]
  const parts = tables.map((table) => {
    const own = list(rows.filter((row) => row.table === table))
    return `${rowId.table} = ${table}::pg_catalog.oid AND ${own}`
  })
  return `((${parts.join(') OR (')}))`
}

const changed = ({ table }: MoveProgram, reason: string): Error =>
  engineError('WRITE_MOVED_ROWS_CHANGED', { table, reason })

/** @throws WRITE_MOVED_ROWS_CHANGED when it is not as many as were locked */
function checkCount(program: MoveProgram, { rows, tag }: WriteReply, expected: number): void {
  const count = rows.length > 0 ? rows.length : Number(/(\d+)$/.exec(tag)?.[1])
  if (count !== expected) throw changed(program, 'what they were found by has changed meanwhile')
}

/** The rows that leave, as they shall be. */
async function removeRows(
  core: SessionCore,
  request: SeveralRequest,
  program: MoveProgram,
  sorted: readonly Sorted[],
  types: readonly number[],
): Promise<CarriedRow[]> {
  const leaving = sorted.filter((one) => one.leaving.length > 0)
  const formats = [...program.insert.columns.map(({ format }) => format), 0]
  const texts = leaving.map(({ held, leaving: rows }) => ({
    held,
    bytes: request.asking(program.remove(naming(program, rows)), types, formats),
  }))
  const replies = await runOnServers(core, texts, core.access.planner.shardCount)
  const taken: CarriedRow[] = []
  for (const [i, reply] of replies.entries()) {
    checkCount(program, reply, leaving[i]!.leaving.length)
    for (const frame of reply.rows) {
      const values = valuesOf(frame)
      if (String(values.pop()) !== program.fingerprint) {
        await core.access.schemaChanged()
        throw changed(program, 'its columns have changed meanwhile')
      }
      taken.push(values)
    }
  }
  return taken
}

async function updateRows(
  core: SessionCore,
  request: SeveralRequest,
  program: MoveProgram,
  sorted: readonly Sorted[],
  types: readonly number[],
): Promise<readonly WriteReply[]> {
  const some = sorted.filter(({ staying }) => staying.length > 0)
  // the first says what the columns of RETURNING are, even of no row
  const staying = some.length > 0 ? some : sorted.slice(0, 1)
  const texts = staying.map(({ held, staying: rows }) => {
    const sql = program.update(naming(program, rows))
    return {
      held,
      bytes: program.checksKey ? request.asking(sql, types, [1]) : request.framesFor(sql, 0, types),
    }
  })
  const replies = await runOnServers(core, texts, core.access.planner.shardCount)
  for (const [i, reply] of replies.entries()) {
    checkCount(program, reply, staying[i]!.staying.length)
    if (program.checksKey) checkKeys(program, reply)
  }
  return replies
}

/** @throws WRITE_MOVED_ROWS_CHANGED */
function checkKeys(program: MoveProgram, { rows, shard }: WriteReply): void {
  for (const frame of rows) {
    const [key] = valuesOf(frame)
    if (program.placeKey(key ?? null) !== shard) {
      throw changed(program, 'their new keys have changed meanwhile')
    }
  }
}

async function putRows(
  core: SessionCore,
  request: SeveralRequest,
  program: MoveProgram,
  rows: readonly CarriedRow[],
): Promise<{ replies: readonly WriteReply[]; targets: readonly HeldServer[] }> {
  const byShard = new Map<number, CarriedRow[]>()
  for (const row of rows) {
    const shard = program.placeKey(row[program.keyAt] ?? null) ?? 0
    const own = byShard.get(shard)
    if (own) own.push(row)
    else byShard.set(shard, [row])
  }
  const shards = [...byShard.keys()].sort((a, b) => a - b)
  checkShards(core, shards, true)
  const targets = await core.held.acquireAll(shards, 'primary')
  const pieces = targets.map((held) => ({
    held,
    pieces: cutRows(program.insert, byShard.get(held.shard) ?? []),
  }))
  if (program.insert.isWhole && pieces.some((one) => one.pieces.length > 1)) {
    throw refusedRows(program, 'it refers to itself, and the rows are too many for one statement')
  }
  const formats = request.protocol === 'simple' ? [] : request.resultFormats
  return { replies: await insertCarried(core, program.insert, pieces, formats), targets }
}
