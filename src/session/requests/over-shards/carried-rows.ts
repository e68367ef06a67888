/** Rows that the session has read from some servers, put into a table on others. */

import type { WriteReply } from '../../../executor/write-run.js'
import type { RowsInsert } from '../../../plan/rows-insert.js'
import { FrameWriter } from '../../../wire/frame-writer.js'
import { frontend } from '../../../wire/tags.js'
import type { SessionCore } from '../../session-core.js'
import type { HeldServer } from '../../state/held-servers.js'
import { namedFrame, parseFrame, syncFrame } from '../batch.js'
import { runOnServers } from './write-parts.js'

export type CarriedRow = readonly (Buffer | null)[]

/** Most parameters of one statement, and about so many bytes. */
const MOST_PARAMETERS = 65_535
const MOST_BYTES = 8_388_608

const executeAll = new FrameWriter(16).begin(frontend.execute).cstring('').int32(0).end().take()

const sizeOf = (row: CarriedRow): number =>
  row.reduce((sum, value) => sum + (value?.length ?? 0) + 4, 0)

/** As many at once as a statement takes. */
export function cutRows(insert: RowsInsert, rows: readonly CarriedRow[]): CarriedRow[][] {
  const most = Math.floor(MOST_PARAMETERS / Math.max(1, insert.columns.length))
  const pieces: CarriedRow[][] = []
  let bytes = 0
  for (const row of rows) {
    const last = pieces.at(-1)
    bytes += sizeOf(row)
    if (last && last.length < most && bytes <= MOST_BYTES) last.push(row)
    else {
      pieces.push([row])
      bytes = sizeOf(row)
    }
  }
  return pieces
}

/** One INSERT of these rows, up to its ReadyForQuery; `formats` as the client wants RETURNING. */
export function insertFrames(
  insert: RowsInsert,
  rows: readonly CarriedRow[],
  formats: readonly number[],
): Buffer {
  const { columns } = insert
  let number = 0
  const list = (): string => [...columns.map(() => `$${++number}`), ...insert.constants].join(', ')
  const lists = rows.map(() => `(${list()})`)
  const sql = `${insert.head}VALUES ${lists.join(', ')}${insert.tail}`
  const types = rows.flatMap(() => columns.map(({ type }) => type))
  const size = rows.reduce((sum, row) => sum + sizeOf(row), 0)
  const bind = new FrameWriter(size + 64).begin(frontend.bind).cstring('').cstring('')
  bind.int16(number)
  for (const _ of rows) for (const { format } of columns) bind.int16(format)
  bind.int16(number)
  for (const row of rows) for (const value of row) bind.value(value)
  bind.int16(formats.length)
  for (const format of formats) bind.int16(format)
  return Buffer.concat([
    parseFrame('', sql, types),
    bind.end().take(),
    namedFrame('describe', 'P', ''),
    executeAll,
    syncFrame,
  ])
}

/** Puts each server's rows in. @throws the first error by time */
export async function insertCarried(
  core: SessionCore,
  insert: RowsInsert,
  targets: readonly { readonly held: HeldServer; readonly pieces: readonly CarriedRow[][] }[],
  formats: readonly number[],
): Promise<readonly WriteReply[]> {
  const replies: WriteReply[] = []
  const rounds = Math.max(0, ...targets.map(({ pieces }) => pieces.length))
  for (let round = 0; round < rounds; round++) {
    const texts = targets.flatMap(({ held, pieces }) => {
      const rows = pieces[round]
      return rows ? [{ held, bytes: insertFrames(insert, rows, formats) }] : []
    })
    replies.push(...(await runOnServers(core, texts, core.access.planner.shardCount)))
  }
  return replies
}
