/** INSERT of what a query finds: its rows are read from whatever shards hold them, and put on those of their keys, in one transaction. */
import { engineError } from '../../../errors/engine-error.js'
import type { WriteReply } from '../../../executor/write-run.js'
import type { Plan } from '../../../plan/plan.js'
import type { SelectedField, SelectInsertProgram } from '../../../plan/select-insert-program.js'
import {
  decodeRowDescription,
  encodeRowDescription,
  type FieldDescription,
} from '../../../wire/backend-messages.js'
import { FrameWriter } from '../../../wire/frame-writer.js'
import { backend } from '../../../wire/tags.js'
import type { SessionCore } from '../../session-core.js'
import type { HeldServer } from '../../state/held-servers.js'
import { runInTransaction } from '../implicit-transaction.js'
import { onlyReading, readRows } from '../read-rows.js'
import { checkShards } from '../request-route.js'
import { type CarriedRow, cutRows, insertCarried } from './carried-rows.js'
import { answerWrite, ending } from './run-split.js'
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
export function runSelectInsert(core: SessionCore, request: SeveralRequest, plan: Plan): void {
  const program = plan.selected
  if (!program) throw engineError('INTERNAL', { message: 'an insert of rows without a program' })
  checkPortal(request, program.returns)
  runInTransaction(core, () => ending(core, () => selectInsert(core, request, program)))
}

async function selectInsert(
  core: SessionCore,
  request: SeveralRequest,
  told: SelectInsertProgram,
): Promise<void> {
  const { planner } = core.access
  const all = Array.from({ length: planner.shardCount }, (_, shard) => shard)
  checkShards(core, all, false)
  const helds = await core.held.acquireAll(all, 'primary')
  const lead = helds[0] as HeldServer
  // what is wrong with the client's text is said before anything is read
  const { statement, types } = await onlyReading([lead], () => describedOn(core, lead, request))
  const program = told.withClock ? told.withClock(await timeOf(core, lead)) : told
  const fields = await fieldsOf(core, lead, request, program, types)
  const planned = planner.plan(program.query).statements[0]
  if (!planned) throw engineError('INTERNAL', { message: 'a query without a statement' })
  const question = {
    statement: planned,
    plan: planned.route(request.parameters, core.routeContext(types)),
    sql: program.query,
    types,
    formats: program.formatsOf(fields),
  }
  const rows = await readRows(core, request, question, helds)
  const drawnType = await drawKeys(core, lead, program, rows)
  const placed = place(core, program, fields, rows, drawnType)
  const done = await putRows(core, request, program, { helds, fields, placed })
  bookWrite(core, request, done.targets.length > 0 ? done.targets : [lead], done.tag)
  const description = columnsOf(request, statement)
  answerWrite(core, request, {
    tag: done.tag,
    lead: { shard: lead.shard, rows: [], columns: description, statement, tag: done.tag },
    rows: done.rows,
  })
}

async function timeOf(core: SessionCore, lead: HeldServer): Promise<string> {
  const [result] = await askServer(core, lead, { sql: 'SELECT pg_catalog.now()', count: 1 })
  return result?.rows[0]?.[0] ?? ''
}

/** RowDescription in what a server said of a statement. */
function descriptionIn(statement: Buffer): FieldDescription[] {
  for (let at = 0; at + 5 <= statement.length; ) {
    const next = at + 1 + statement.readInt32BE(at + 1)
    if (statement[at] === backend.rowDescription)
      return decodeRowDescription(statement.subarray(at + 5, next))
    at = next
  }
  return []
}

/** The types of the query's columns, as the server finds them. */
async function fieldsOf(
  core: SessionCore,
  lead: HeldServer,
  request: SeveralRequest,
  program: SelectInsertProgram,
  types: readonly number[],
): Promise<SelectedField[]> {
  const bytes = request.askingTypes(program.query, types)
  const [reply] = await onlyReading([lead], () => runOnServers(core, [{ held: lead, bytes }], 1))
  return descriptionIn(reply!.statement).map(({ typeOid }) => ({ type: typeOid }))
}

/** Values of a key that the statement leaves to its default, put behind each row; their type. */
async function drawKeys(
  core: SessionCore,
  lead: HeldServer,
  { keyDefault }: SelectInsertProgram,
  rows: CarriedRow[],
): Promise<number | undefined> {
  if (keyDefault === undefined || rows.length === 0) return undefined
  const sql = `SELECT (${keyDefault}) FROM pg_catalog.generate_series(1, ${rows.length})`
  const [result] = await askServer(core, lead, { sql, count: 1 })
  for (const [i, row] of rows.entries()) {
    const text = result?.rows[i]?.[0] ?? null
    rows[i] = [...row, text === null ? null : Buffer.from(text)]
  }
  return result?.columns[0]?.typeOid ?? 0
}

interface Placed {
  readonly byShard: ReadonlyMap<number, CarriedRow[]>
  /** The shard of each row, where it has one. */
  readonly owners: readonly number[]
}

function place(
  core: SessionCore,
  program: SelectInsertProgram,
  fields: readonly SelectedField[],
  rows: readonly CarriedRow[],
  drawnType: number | undefined,
): Placed {
  const byShard = new Map<number, CarriedRow[]>()
  const owners: number[] = []
  for (const row of rows) {
    checkEncoding(core, program, row)
    const shards = program.shardsOf(row, fields, drawnType)
    owners.push(shards[0] ?? 0)
    for (const shard of shards) {
      const own = byShard.get(shard)
      if (own) own.push(row)
      else byShard.set(shard, [row])
    }
  }
  return { byShard, owners }
}

/** Text is placed by its UTF-8. @throws WRITE_SELECTED_TYPE */
function checkEncoding(
  { told }: SessionCore,
  { textKeyAt, table }: SelectInsertProgram,
  row: CarriedRow,
): void {
  const encoding = told.get('client_encoding') ?? 'UTF8'
  if (textKeyAt === undefined || encoding === 'UTF8') return
  if (row[textKeyAt]?.some((byte) => byte >= 128)) {
    const reason = `keys are read in encoding ${encoding}`
    throw engineError('WRITE_SELECTED_TYPE', { table, reason })
  }
}

interface Done {
  readonly tag: string
  readonly rows: readonly Buffer[]
  readonly targets: readonly HeldServer[]
}

async function putRows(
  core: SessionCore,
  request: SeveralRequest,
  program: SelectInsertProgram,
  work: {
    readonly helds: readonly HeldServer[]
    readonly fields: readonly SelectedField[]
    readonly placed: Placed
  },
): Promise<Done> {
  const { byShard, owners } = work.placed
  const targets = work.helds.filter((held) => byShard.has(held.shard))
  if (targets.length === 0) return { tag: 'INSERT 0 0', rows: [], targets }
  checkShards(
    core,
    targets.map(({ shard }) => shard),
    true,
  )
  const insert = program.insertFor(work.fields)
  const pieces = targets.map((held) => ({
    held,
    pieces: cutRows(insert, byShard.get(held.shard) ?? []),
  }))
  if (insert.isWhole && pieces.some((one) => one.pieces.length > 1)) {
    throw engineError('WRITE_SELECTED_TYPE', {
      table: program.table,
      reason: 'the rows are too many for one statement, and may concern each other',
    })
  }
  const formats = request.protocol === 'simple' ? [] : request.resultFormats
  if (!program.isEverywhere) {
    const replies = await insertCarried(core, insert, pieces, formats)
    const tag = addedTag(replies.map((reply) => reply.tag))
    return { tag, rows: inOrder(replies, owners), targets }
  }
  // the first alone, so that two of them wait for each other there and not crosswise
  const first = await insertCarried(core, insert, pieces.slice(0, 1), formats)
  const others = await insertCarried(core, insert, pieces.slice(1), formats)
  const tag = addedTag(first.map((reply) => reply.tag))
  compareCounts(tag, first, others)
  return { tag, rows: first.flatMap((reply) => reply.rows), targets }
}

/** @throws WRITE_COUNTS_DIFFER */
function compareCounts(
  expected: string,
  first: readonly WriteReply[],
  others: readonly WriteReply[],
): void {
  const countOf = (tag: string): string => tag.slice(tag.lastIndexOf(' ') + 1)
  for (const shard of new Set(others.map((reply) => reply.shard))) {
    const own = addedTag(others.filter((reply) => reply.shard === shard).map(({ tag }) => tag))
    if (own === expected) continue
    throw engineError('WRITE_COUNTS_DIFFER', {
      shard,
      count: countOf(own),
      first: first[0]!.shard,
      expected: countOf(expected),
    })
  }
}

/** Rows of RETURNING in the order of the query's, where each gave one. */
function inOrder(replies: readonly WriteReply[], owners: readonly number[]): readonly Buffer[] {
  const byShard = new Map<number, Buffer[]>()
  for (const { shard, rows } of replies) {
    byShard.set(shard, [...(byShard.get(shard) ?? []), ...rows])
  }
  const all = [...byShard.values()].flat()
  if (all.length !== owners.length) return all
  const next = new Map<number, number>()
  return owners.map((shard) => {
    const at = next.get(shard) ?? 0
    next.set(shard, at + 1)
    return byShard.get(shard)![at]!
  })
}

/** The columns of RETURNING in the forms that the client asks for, even of no row. */
function columnsOf({ resultFormats }: SeveralRequest, statement: Buffer): Buffer | undefined {
  const fields = descriptionIn(statement)
  if (fields.length === 0) return undefined
  const writer = new FrameWriter(256)
  const format = (i: number): number => resultFormats[resultFormats.length === 1 ? 0 : i] ?? 0
  encodeRowDescription(
    writer,
    fields.map((field, i) => ({ ...field, format: format(i) })),
  )
  return writer.take()
}
