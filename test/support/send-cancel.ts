/** The cancel request of a node-postgres client, on a connection of its own, as psql sends it at Ctrl-C. */
import { connect } from 'node:net'
import type pg from 'pg'

/** CancelRequest: Int32 length, Int32 80877102, Int32 process, Int32 secret. */
const CANCEL_REQUEST = 80_877_102

/** Resolves when the other side has taken it and closed the connection. */
export function sendCancel(client: pg.Client, port: number): Promise<void> {
  const { processID, secretKey } = client as unknown as { processID: number; secretKey: number }
  const packet = Buffer.alloc(16)
  packet.writeInt32BE(16, 0)
  packet.writeInt32BE(CANCEL_REQUEST, 4)
  packet.writeInt32BE(processID, 8)
  packet.writeInt32BE(secretKey, 12)
  return new Promise((resolve, reject) => {
    const socket = connect(port, '127.0.0.1', () => socket.end(packet))
    socket.on('close', () => resolve()).on('error', reject)
    socket.resume()
  })
}
