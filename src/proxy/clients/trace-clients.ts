/** `serve --trace`: the conversation with each client in libpq's trace form. What comes after a change to TLS is not traced. */
import type { ByteSocket, ChunkReceiver } from '../../net/byte-socket.js'
import type { SessionEnvironment } from '../../session/environment.js'
import { ConnectionTrace } from '../../wire/trace.js'

type Accept = (socket: ByteSocket, environment: SessionEnvironment) => Promise<void>

/** An `accept` that listens in on every socket. */
export function traceClients(accept: Accept, write: (line: string) => void): Accept {
  return (socket, environment) => {
    listenIn(socket, write)
    return accept(socket, environment)
  }
}

/** Changes the socket itself, because an upgrade to TLS needs the very object. */
function listenIn(socket: ByteSocket, write: (line: string) => void): void {
  const peer = `${socket.remoteAddress}:${socket.remotePort}`
  const trace = new ConnectionTrace((line) => write(`${peer}\t${line}`))
  const attempt = (read: () => void) => {
    try {
      read()
    } catch {
      // Broken bytes are the session's to report.
    }
  }
  const inner = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(socket), 'onChunk')
  Object.defineProperty(socket, 'onChunk', {
    configurable: true,
    get: () => inner?.get?.call(socket),
    set: (take: (chunk: Buffer) => void) =>
      inner?.set?.call(socket, (chunk: Buffer) => {
        attempt(() => trace.client(chunk))
        take(chunk)
      }),
  })
  let receiver = socket.receiver
  Object.defineProperty(socket, 'receiver', {
    configurable: true,
    get: () => receiver,
    set: (told: ChunkReceiver | undefined) => {
      receiver = told && {
        receive: (chunk) => {
          attempt(() => trace.client(chunk))
          told.receive(chunk)
        },
      }
    },
  })
  const send = socket.write.bind(socket)
  socket.write = (bytes, start = 0, end = bytes.length) => {
    attempt(() => trace.server(bytes.subarray(start, end)))
    return send(bytes, start, end)
  }
  const sendCopied = socket.writeCopied.bind(socket)
  socket.writeCopied = (bytes, start, end) => {
    attempt(() => trace.server(bytes.subarray(start, end)))
    return sendCopied(bytes, start, end)
  }
}
