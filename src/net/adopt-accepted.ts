/**
 * Gives an accepted socket the `onread` option, which Node offers publicly only to sockets that connect.
 * The one place that touches a private handle; without it, 'data' events serve, slower and as right.
 */
import { Socket } from 'node:net'
import { NodeByteSocket, WRITE_HIGH_WATER_BYTES } from './byte-socket.js'
import { ReadBuffer } from './read-buffer.js'

interface WithHandle {
  _handle?: { useUserBuffer?: unknown; readStart?: unknown } | null
}

/** `accepted` comes paused (`pauseOnConnect`) and is not to be used any more. */
export function adoptAccepted(accepted: Socket): NodeByteSocket {
  const holder = accepted as unknown as WithHandle
  const handle = holder._handle
  if (!handle || typeof handle.useUserBuffer !== 'function') {
    const plain = new NodeByteSocket()
    plain.attach(accepted)
    return plain
  }
  // Without its handle the first object closes nothing but its place in the server's count.
  holder._handle = null
  accepted.on('error', () => undefined)
  accepted.destroy()
  const bytes = new NodeByteSocket({ reader: new ReadBuffer({ shares: true }) })
  const socket = new Socket({
    handle,
    onread: bytes.onRead,
    writableHighWaterMark: WRITE_HIGH_WATER_BYTES,
    pauseOnCreate: true,
    readable: true,
    writable: true,
  } as ConstructorParameters<typeof Socket>[0])
  bytes.attach(socket)
  return bytes
}
