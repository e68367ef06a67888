/**
 * Gives an accepted socket the `onread` option, which Node offers publicly only to sockets that connect, and takes sockets
 * apart for another process. The one place that touches a private handle; without it, 'data' events serve, slower and as right.
 */
import { Socket } from 'node:net'
import { NodeByteSocket, WRITE_HIGH_WATER_BYTES } from './byte-socket.js'
import { ReadBuffer } from './read-buffer.js'

interface Handle {
  useUserBuffer?: unknown
  close(): void
}

interface WithHandle {
  _handle?: Handle | null
}

/** An accepted connection of which nothing was read, as it travels to another process; Node's own handle, or the socket. */
export type AcceptedHandle = Handle | Socket

/** `accepted` comes paused (`pauseOnConnect`) and is not to be used any more. */
export function adoptAccepted(accepted: Socket): NodeByteSocket {
  return adoptHandle(takeHandle(accepted))
}

/** Takes the connection out of `accepted`, which is dead then. */
export function takeHandle(accepted: Socket): AcceptedHandle {
  const holder = accepted as unknown as WithHandle
  const handle = holder._handle
  if (!handle || typeof handle.useUserBuffer !== 'function') return accepted
  // Without its handle the first object closes nothing but its place in the server's count.
  holder._handle = null
  accepted.on('error', () => undefined)
  accepted.destroy()
  return handle
}

/** Closes this process's end of it, and nothing else: another process may go on with the connection. */
export function closeHandle(handle: AcceptedHandle): void {
  if (handle instanceof Socket) handle.destroy()
  else handle.close()
}

/** `onGone` is called once, when the connection is closed, whoever has it then. */
export function adoptHandle(
  handle: AcceptedHandle,
  onGone: () => void = () => undefined,
): NodeByteSocket {
  if (handle instanceof Socket) {
    const plain = new NodeByteSocket()
    handle.once('close', onGone)
    plain.attach(handle)
    return plain
  }
  const bytes = new NodeByteSocket({ reader: new ReadBuffer({ shares: true }) })
  const socket = new Socket({
    handle,
    onread: bytes.onRead,
    writableHighWaterMark: WRITE_HIGH_WATER_BYTES,
    pauseOnCreate: true,
    // NodeByteSocket answers a FIN, when nobody holds it open
    allowHalfOpen: true,
    readable: true,
    writable: true,
  } as ConstructorParameters<typeof Socket>[0])
  socket.once('close', onGone)
  bytes.attach(socket)
  return bytes
}
