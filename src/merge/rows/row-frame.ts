/**
 * Where the fields of a DataRow stand, without decoding any. Lengths inside a frame are claims and are checked.
 *
 *   Byte1 'D' · Int32 length · Int16 count · (Int32 length or −1 · bytes)*
 */
import { engineError } from '../../errors/engine-error.js'

/** Tag, length and count. */
export const ROW_HEADER_BYTES = 7

export function int32At(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] as number) << 24) |
    ((bytes[at + 1] as number) << 16) |
    ((bytes[at + 2] as number) << 8) |
    (bytes[at + 3] as number)
  )
}

/** Where the frame that begins at `start` ends. */
export const frameEnd = (bytes: Uint8Array, start: number): number =>
  start + 1 + int32At(bytes, start + 1)

export function rowTruncated(): never {
  throw engineError('WIRE_TRUNCATED', { tag: 'D', field: 'column' })
}

/** Begin and end of each field of one row at a time. */
export class RowFields {
  readonly from: Int32Array
  readonly to: Int32Array
  readonly #count: number

  constructor(count: number) {
    this.#count = count
    this.from = new Int32Array(count)
    this.to = new Int32Array(count)
  }

  /** Finds the fields of the row [start, end); a NULL ends before it begins. */
  locate(bytes: Buffer, start: number, end: number): void {
    let at = start + ROW_HEADER_BYTES
    for (let column = 0; column < this.#count; column++) {
      if (at + 4 > end) rowTruncated()
      const length = int32At(bytes, at)
      at += 4
      this.from[column] = at
      this.to[column] = at + length
      if (length > 0) at += length
      if (at > end) rowTruncated()
    }
  }

  isNull(column: number): boolean {
    return (this.to[column] as number) < (this.from[column] as number)
  }
}

/** Where the first `columns` fields of the row end. */
export function endOfFields(bytes: Buffer, start: number, end: number, columns: number): number {
  let at = start + ROW_HEADER_BYTES
  for (let column = 0; column < columns; column++) {
    if (at + 4 > end) rowTruncated()
    const length = int32At(bytes, at)
    at += length > 0 ? length + 4 : 4
  }
  if (at > end) rowTruncated()
  return at
}

/** Writes tag, length and count of a row that ends at `end`. */
export function writeRowHeader(bytes: Buffer, start: number, end: number, columns: number): void {
  const length = end - start - 1
  bytes[start] = 0x44
  bytes[start + 1] = length >>> 24
  bytes[start + 2] = length >>> 16
  bytes[start + 3] = length >>> 8
  bytes[start + 4] = length
  bytes[start + 5] = columns >>> 8
  bytes[start + 6] = columns
}
