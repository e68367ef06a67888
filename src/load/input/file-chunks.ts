/**
 * A file in pieces, read some at a time: the next ones are read while the last are worked on, into two buffers that are used by
 * turns. Fresh buffers would cost more than the reading: the system clears every page of them; and each reading wakes a thread.
 */
import { open } from 'node:fs/promises'
import { engineError } from '../../errors/engine-error.js'

const READ_BYTES = 1024 * 1024
const PIECE_BYTES = 256 * 1024

/**
 * Bytes of the file from `start` to `end` (exclusive); each piece is lent until the next is asked for.
 * @throws COPY_INPUT_BROKEN when the file ends before
 */
export async function* fileChunks(
  path: string,
  start = 0,
  end = Number.POSITIVE_INFINITY,
): AsyncGenerator<Buffer> {
  const file = await open(path)
  let position = start
  const readInto = async (buffer: Buffer) => {
    const wanted = Math.min(buffer.length, end - position)
    if (wanted <= 0) return buffer.subarray(0, 0)
    const { bytesRead } = await file.read(buffer, 0, wanted, position)
    position += bytesRead
    return buffer.subarray(0, bytesRead)
  }
  let used = Buffer.allocUnsafeSlow(READ_BYTES)
  let spare = Buffer.allocUnsafeSlow(READ_BYTES)
  let next = readInto(used)
  try {
    for (let chunk = await next; chunk.length > 0; chunk = await next) {
      ;[used, spare] = [spare, used]
      next = readInto(used)
      for (let at = 0; at < chunk.length; at += PIECE_BYTES)
        yield chunk.subarray(at, at + PIECE_BYTES)
    }
    if (position < end && end < Number.POSITIVE_INFINITY)
      throw engineError('COPY_INPUT_BROKEN', { name: path, reason: 'it has become shorter' })
  } finally {
    await next.catch(() => undefined)
    await file.close()
  }
}
