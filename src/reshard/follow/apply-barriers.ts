/** Changes that cannot wait in a batch: a row whose key changes while the stream lacks some of its values, and TRUNCATE. */

import { everyCopy, type MovePlan, type MoveTable } from '../move-table.js'
import { quoteLiteral, quoteName } from '../sql-names.js'
import { type PlacedTuple, textTuple } from './array-parameter.js'
import { overlay } from './change-batch.js'
import type { Rekey } from './route-change.js'
import type { TargetWriter } from './target-writer.js'

const writersAt = (shards: readonly number[], writers: readonly TargetWriter[]): TargetWriter[] =>
  shards.map((shard) => writers[shard] as TargetWriter)

/**
 * Completes the row from where it stands, puts it to its new place, and only then takes the old one away:
 * a death in between leaves both, and the replay ends the move.
 */
export async function rekeyRow(
  rekey: Rekey,
  writers: readonly TargetWriter[],
  isNew: (shard: number) => boolean,
): Promise<void> {
  const { table, before, after } = rekey
  const toShards = rekey.toShards.filter(isNew)
  const fromShards = rekey.fromShards.filter(isNew)
  const [from] = writersAt(rekey.fromShards, writers)
  const old = await from?.fetch(table, before)
  // Not there: an earlier try has put it to its new place already, and the rest is an ordinary update.
  const row = old && overlay(table, old, after)
  const kind = row ? 'put' : 'patch'
  const moving = toShards.filter((shard) => !fromShards.includes(shard))
  for (const writer of writersAt(moving, writers)) {
    await writer.applyNow([{ kind, table, row: row ?? after }])
  }
  for (const shard of fromShards) {
    const { batch } = writers[shard] as TargetWriter
    batch.add({ kind: 'delete', table, row: before })
    if (toShards.includes(shard)) batch.add({ kind, table, row: row ?? after })
  }
}

const PAGE_ROWS = 5_000

/**
 * TRUNCATE on a source empties the source's part of the table only: with several sources the rows of the others,
 * which may have been written since, stay.
 */
export async function truncateTables(
  tables: readonly MoveTable[],
  plan: MovePlan,
  sourceShard: number,
  writers: readonly TargetWriter[],
): Promise<void> {
  for (const table of tables) {
    const wholeTable = table.from.kind !== 'sharded' || plan.sourceCount === 1
    const shards = new Set(everyCopy(table.to, plan.targetCount))
    for (const [shard, writer] of writers.entries()) {
      if (!shards.has(shard)) continue
      if (wholeTable) await writer.execute([`DELETE FROM ${table.sqlName}`], undefined)
      else await deletePart(table, sourceShard, writer)
    }
  }
}

async function deletePart(
  table: MoveTable,
  sourceShard: number,
  writer: TargetWriter,
): Promise<void> {
  const { from } = table
  if (from.kind !== 'sharded') return
  const wanted = [...table.identity, from.keyIndex]
  const columns = wanted.map((column) => quoteName(table.columns[column]?.name ?? ''))
  const key = table.identity.map((_, i) => columns[i])
  let after: PlacedTuple | undefined
  for (;;) {
    const bound = after ? `WHERE (${key.join(', ')}) > (${literals(after, table)})` : ''
    const rows = await writer.query(
      `SELECT ${columns.join(', ')} FROM ${table.sqlName} ${bound} ORDER BY ${key.join(', ')} LIMIT ${PAGE_ROWS}`,
    )
    const doomed = rows.filter((row) => {
      const value = row.at(-1) as string | null
      if (value === null) return from.placer.ofNull() === sourceShard
      const bytes = Buffer.from(value, 'utf8')
      return from.placer.ofText(bytes, 0, bytes.length) === sourceShard
    })
    await writer.applyNow(doomed.map((row) => ({ kind: 'delete', table, row: keyRow(table, row) })))
    const last = rows.at(-1)
    if (!last || rows.length < PAGE_ROWS) return
    after = keyRow(table, last)
  }
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
