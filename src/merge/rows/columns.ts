/** The columns of the shards' rows, and the RowDescription that the client sees: the hidden ones on the right are cut off. */
import { decodeRowDescription, type FieldDescription } from '../../wire/backend-messages.js'

/** Fields of the RowDescription frame [start, end). */
export function columnsOf(buffer: Buffer, start: number, end: number): readonly FieldDescription[] {
  return decodeRowDescription(buffer.subarray(start + 5, end))
}

/** The RowDescription frame [start, end) with its first `visible` fields only; a copy. */
export function visibleDescription(
  buffer: Buffer,
  start: number,
  end: number,
  visible: number,
): Buffer {
  let at = start + 7
  for (let column = 0; column < visible; column++) {
    const zero = buffer.indexOf(0, at)
    if (zero < 0 || zero + 19 > end) break
    at = zero + 19
  }
  const frame = Buffer.from(buffer.subarray(start, at))
  frame.writeInt32BE(frame.length - 1, 1)
  frame.writeUInt16BE(visible, 5)
  return frame
}
