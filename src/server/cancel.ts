/** CancelRequest on a connection of its own. @see PostgreSQL documentation, "Canceling Requests in Progress" */
import { systemClock } from '../base/clock.js'
import { connectSocket } from '../net/connect.js'
import { FrameWriter } from '../wire/frame-writer.js'
import { CANCEL_REQUEST_CODE } from '../wire/tags.js'
import { encrypt } from './encrypt.js'
import { type ServerTarget, socketAddress } from './server-target.js'

const CANCEL_TIMEOUT_MS = 5000

/**
 * Sends the cancel, by TLS where the target has it, since who reads its key can cancel too; resolves when the server
 * has closed the socket: from then on it can hit no later statement.
 */
export async function sendCancel(
  target: ServerTarget,
  processId: number,
  key: Buffer,
): Promise<void> {
  const plain = await connectSocket(socketAddress(target), { timeoutMs: CANCEL_TIMEOUT_MS })
  const timer = systemClock.after(CANCEL_TIMEOUT_MS, () => plain.destroy())
  const socket = await encrypt(plain, target, CANCEL_TIMEOUT_MS).finally(() => timer.cancel())
  await new Promise<void>((resolve) => {
    socket.onClose = () => resolve()
    socket.onChunk = () => undefined
    socket.write(
      new FrameWriter(32)
        .beginUntagged()
        .int32(CANCEL_REQUEST_CODE)
        .int32(processId)
        .bytes(key)
        .end()
        .take(),
    )
  })
}
