/**
 * Column values of many rows as one PostgreSQL array in binary form: a value of pgoutput is an array element byte for byte.
 * Pure. Follows `array_recv` in `src/backend/utils/adt/arrayfuncs.c`.
 *
 *   Int32 dimensions · Int32 has nulls · Int32 element type · Int32 count · Int32 lower bound · elements (Int32 length · bytes)
 */
import { COLUMN_BINARY, COLUMN_NULL, COLUMN_TEXT, type Tuple } from '../../replication/change.js'

export const TEXT_OID = 25
const HEAD_BYTES = 20

/** A row version with the places of a table's columns in it. */
export interface PlacedTuple {
  readonly tuple: Tuple
  /** Table column → column of the tuple. */
  readonly at: Int32Array
}

/** True when no row has the column in another form than `kind`. */
export function isUniform(rows: readonly PlacedTuple[], column: number, kind: number): boolean {
  return rows.every((row) => {
    const found = row.tuple.kinds[row.at[column] as number]
    return found === kind || (found !== COLUMN_TEXT && found !== COLUMN_BINARY)
  })
}

/** The array of one column; null and absent values become NULL. */
export function columnArray(
  rows: readonly PlacedTuple[],
  column: number,
  elementOid: number,
): Buffer {
  let bytes = HEAD_BYTES
  let nulls = 0
  for (const { tuple, at } of rows) {
    const place = at[column] as number
    bytes += 4
    if (hasValue(tuple, place))
      bytes += (tuple.ends[place] as number) - (tuple.starts[place] as number)
    else nulls = 1
  }
  const array = Buffer.allocUnsafe(bytes)
  const head = [1, nulls, elementOid, rows.length, 1]
  for (const [i, value] of head.entries()) array.writeInt32BE(value | 0, i * 4)
  let to = HEAD_BYTES
  for (const { tuple, at } of rows) {
    const place = at[column] as number
    if (!hasValue(tuple, place)) {
      to = array.writeInt32BE(-1, to)
      continue
    }
    const start = tuple.starts[place] as number
    const end = tuple.ends[place] as number
    to = array.writeInt32BE(end - start, to)
    tuple.bytes.copy(array, to, start, end)
    to += end - start
  }
  return array
}

function hasValue(tuple: Tuple, place: number): boolean {
  const kind = tuple.kinds[place]
  return kind === COLUMN_TEXT || kind === COLUMN_BINARY
}

/** A row version of text values, in the order given. */
export function textTuple(values: readonly (string | null)[]): PlacedTuple {
  const parts = values.map((value) => Buffer.from(value ?? '', 'utf8'))
  const tuple: Tuple = {
    bytes: Buffer.concat(parts),
    kinds: Uint8Array.from(values, (value) => (value === null ? COLUMN_NULL : COLUMN_TEXT)),
    starts: new Int32Array(values.length),
    ends: new Int32Array(values.length),
  }
  let at = 0
  for (const [i, part] of parts.entries()) {
    tuple.starts[i] = at
    at += part.length
    tuple.ends[i] = at
  }
  return { tuple, at: Int32Array.from(values, (_, i) => i) }
}
