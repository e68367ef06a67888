/** CancelRequest on a connection of its own. @see PostgreSQL documentation, "Canceling Requests in Progress" */
import { connectSocket } from '../net/connect.js'
import { FrameWriter } from '../wire/frame-writer.js'
import { CANCEL_REQUEST_CODE } from '../wire/tags.js'
import { type ServerTarget, socketAddress } from './server-target.js'

const CANCEL_TIMEOUT_MS = 5000

/** Sends the cancel and resolves when the server has closed the socket: from then on it can hit no later statement. */
export async function sendCancel(
  target: ServerTarget,
  processId: number,
  key: Buffer,
): Promise<void> {
  const socket = await connectSocket(socketAddress(target), { timeoutMs: CANCEL_TIMEOUT_MS })
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
