/** Changes that cannot wait in a batch: a row whose key changes while the stream lacks some of its values, and TRUNCATE. */

import { quoteLiteral, quoteName } from '../../pg/sql-names.js'
import type { Lsn } from '../../replication/lsn.js'
import { everyCopy, type MovePlan, type MoveTable } from '../move-table.js'
import { type PlacedTuple, textTuple } from './array-parameter.js'
import { keyOnly, overlay } from './change-batch.js'
import type { Rekey } from './route-change.js'
import type { SourceRow } from './source-row.js'
import type { TargetWriter } from './target-writer.js'
import type { Watermarks } from './watermarks.js'

/** What a follower has for changes that it takes alone. */
export interface Barrier {
  readonly plan: MovePlan
  readonly source: number
  readonly writers: readonly TargetWriter[]
  readonly watermarks: Watermarks
  readonly commitStart: Lsn
  /** False for a target that has committed the transaction at hand before a restart. */
  isNew(shard: number): boolean
  /** Sends what is batched, so that a target's rows are those of this moment. */
  settle(): Promise<void>
  /** Reads a row of the source in a snapshot of its own. */
  reread(table: MoveTable, row: PlacedTuple): Promise<SourceRow>
}

/**
 * The row is completed from where it stands on a target, else read again from the source as a part of its own: the
 * target that it stood on may have committed the move already, or have been copied after it. No transaction may be
 * begun on a target for that: a slot on the same server would wait for it.
 */
export async function rekeyRow(rekey: Rekey, barrier: Barrier): Promise<void> {
  const { table, before, after } = rekey
  const { writers, watermarks, commitStart } = barrier
  const isDue = (shard: number, row: PlacedTuple): boolean =>
    barrier.isNew(shard) && !watermarks.covers(shard, table, row, commitStart)
  const leaving = rekey.fromShards.filter((shard) => isDue(shard, before))
  const coming = rekey.toShards.filter((shard) => isDue(shard, after))
  const stands = await Promise.all(
    leaving.map((shard) => (writers[shard] as TargetWriter).fetch(table, before)),
  )
  for (const shard of leaving) {
    ;(writers[shard] as TargetWriter).batch.add({ kind: 'delete', table, row: before })
  }
  if (coming.length === 0) return
  const old = stands.find((row) => row !== undefined)
  if (old) return putRow(table, overlay(table, old, after), coming, writers)
  const found = await barrier.reread(table, after)
  for (const shard of coming) watermarks.reread(shard, table, after, found.watermark)
  // Its key in the form of the stream, so that later changes find it in the batch.
  const whole = found.row && overlay(table, found.row, keyOnly(table, after))
  if (whole) return putRow(table, whole, coming, writers)
  // Gone since: what took it away comes later and finds nothing.
  for (const shard of coming) {
    ;(writers[shard] as TargetWriter).batch.add({ kind: 'delete', table, row: after })
  }
}

function putRow(
  table: MoveTable,
  row: PlacedTuple,
  shards: readonly number[],
  writers: readonly TargetWriter[],
): void {
  for (const shard of shards)
    (writers[shard] as TargetWriter).batch.add({ kind: 'put', table, row })
}

const PAGE_ROWS = 5_000

/**
 * TRUNCATE on a source empties the source's part of the table only: with several sources the rows of the others,
 * which may have been written since, stay; and so do those that were copied after it.
 */
export async function truncateTables(
  tables: readonly MoveTable[],
  barrier: Barrier,
): Promise<void> {
  await barrier.settle()
  const { plan, writers, watermarks, commitStart } = barrier
  for (const table of tables) {
    for (const shard of everyCopy(table.to, plan.targetCount)) {
      const coverage = watermarks.coverage(shard, table, commitStart)
      if (!barrier.isNew(shard) || coverage === 'all') continue
      const writer = writers[shard] as TargetWriter
      const isWhole = table.from.kind !== 'sharded' || plan.sourceCount === 1
      if (isWhole && coverage === 'none') await writer.execute([`DELETE FROM ${table.targetName}`])
      else await deletePart(table, shard, barrier)
    }
  }
}

/** Deletes the rows of one source that no later copy has brought, page by page. */
async function deletePart(table: MoveTable, shard: number, barrier: Barrier): Promise<void> {
  const writer = barrier.writers[shard] as TargetWriter
  if (table.identity.length === 0) return deleteKeyless(table, writer, barrier)
  const keyIndex =
    table.from.kind === 'sharded' ? table.from.keyIndex : (table.identity[0] as number)
  const wanted = [...table.identity, keyIndex]
  const columns = wanted.map((column) => quoteName(table.columns[column]?.name ?? ''))
  const key = table.identity.map((_, i) => columns[i])
  let after: PlacedTuple | undefined
  for (;;) {
    const bound = after ? `WHERE (${key.join(', ')}) > (${literals(after, table)})` : ''
    const rows = await writer.query(
      `SELECT ${columns.join(', ')} FROM ${table.targetName} ${bound} ORDER BY ${key.join(', ')} LIMIT ${PAGE_ROWS}`,
    )
    for (const values of rows) {
      const row = keyRow(table, values)
      const isOurs = isOfSource(table, values.at(-1) ?? null, barrier.source)
      const isCovered = barrier.watermarks.covers(shard, table, row, barrier.commitStart)
      if (isOurs && !isCovered) writer.batch.add({ kind: 'delete', table, row })
    }
    await writer.flush(undefined)
    const last = rows.at(-1)
    if (!last || rows.length < PAGE_ROWS) return
    after = keyRow(table, last)
  }
}

function isOfSource(table: MoveTable, value: string | null, source: number): boolean {
  const { from } = table
  if (from.kind !== 'sharded') return true
  if (value === null) return from.placer.ofNull() === source
  const bytes = Buffer.from(value, 'utf8')
  return from.placer.ofText(bytes, 0, bytes.length) === source
}

/** A table without a key is one part: all of a source's rows go. They are known by their sharding key. */
async function deleteKeyless(
  table: MoveTable,
  writer: TargetWriter,
  barrier: Barrier,
): Promise<void> {
  const { from } = table
  if (from.kind !== 'sharded') return
  const name = quoteName(from.keyColumn)
  const rows = await writer.query(`SELECT DISTINCT ${name}::text FROM ${table.targetName}`)
  const doomed = rows.filter(([value]) => isOfSource(table, value ?? null, barrier.source))
  const type = table.columns[from.keyIndex]?.type
  await writer.execute(
    doomed.map(([value]) =>
      value === null || value === undefined
        ? `DELETE FROM ${table.targetName} WHERE ${name} IS NULL`
        : `DELETE FROM ${table.targetName} WHERE ${name} = ${quoteLiteral(value)}::${type}`,
    ),
  )
}

/** A row that holds its replica identity alone, in text. */
function keyRow(table: MoveTable, values: readonly (string | null)[]): PlacedTuple {
  const whole: (string | null)[] = table.columns.map(() => null)
  for (const [i, column] of table.identity.entries()) whole[column] = values[i] ?? null
  return textTuple(whole)
}

function literals(row: PlacedTuple, table: MoveTable): string {
  return table.identity
    .map((column) => {
      const { tuple } = row
      const text = tuple.bytes.toString('utf8', tuple.starts[column], tuple.ends[column])
      return `${quoteLiteral(text)}::${table.columns[column]?.type}`
    })
    .join(', ')
}
