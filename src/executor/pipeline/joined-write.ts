/** Requests that were joined, in as few writes as their bytes fit. */
import { copyBytes } from '../../base/copy-bytes.js'
import type { ServerConnection } from '../../server/server-connection.js'
import type { Slot } from './slot.js'

/** They stand here until they are written, which is at once. */
const JOINED_BYTES = 65_536
const joined = Buffer.allocUnsafeSlow(JOINED_BYTES)

export function writeJoined(server: ServerConnection, slots: readonly Slot[]): void {
  let used = 0
  let count = 0
  for (const slot of slots) {
    const { bytes, length } = slot.unit
    if (used + length > JOINED_BYTES) {
      if (count > 0) server.writeCopied(joined, used, count)
      used = 0
      count = 0
    }
    slot.isWritten = true
    if (length > JOINED_BYTES) server.writeCopied(bytes, length, 1)
    else {
      used = copyBytes(bytes, 0, length, joined, used)
      count++
    }
  }
  if (count > 0) server.writeCopied(joined, used, count)
}
