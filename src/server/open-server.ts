/**
 * Opens a connection to PostgreSQL: TLS when asked, the startup packet, authentication, until the first ReadyForQuery.
 * @see PostgreSQL documentation, "Start-up" in "Message Flow"
 */

import { systemClock } from '../base/clock.js'
import { deferred } from '../base/deferred.js'
import { type EngineError, engineError } from '../errors/engine-error.js'
import type { ByteSocket } from '../net/byte-socket.js'
import { connectSocket } from '../net/connect.js'
import { upgradeToTlsClient } from '../net/tls-upgrade.js'
import { FrameReader } from '../wire/frame-reader.js'
import { FrameWriter } from '../wire/frame-writer.js'
import { backend, PROTOCOL_3_0, SSL_REQUEST_CODE } from '../wire/tags.js'
import { PasswordAnswers } from './password-answers.js'
import { readCString } from './read-cstring.js'
import { ServerConnection } from './server-connection.js'
import { serverErrorOf } from './server-error.js'
import { type ServerTarget, socketAddress } from './server-target.js'

export interface OpenServerOptions {
  /** For the whole of it: connect, TLS, login. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** `prepared_statements_limit`. */
  readonly preparedLimit?: number
}

const DEFAULT_PREPARED_LIMIT = 5000

/**
 * @throws NET_CONNECT_FAILED, NET_CONNECT_TIMEOUT, the server's own FATAL, SERVER_START_TIMEOUT, SERVER_LOST,
 *   SERVER_NO_PASSWORD, SERVER_AUTH_UNKNOWN, AUTH_*
 */
export async function openServer(
  target: ServerTarget,
  options: OpenServerOptions = {},
): Promise<ServerConnection> {
  const socket = await connectSocket(socketAddress(target), {
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
  })
  let started: ByteSocket = socket
  const timer =
    options.timeoutMs === undefined
      ? undefined
      : systemClock.after(options.timeoutMs, () => {
          expired = true
          started.destroy()
        })
  let expired = false
  try {
    if (target.tls) started = await encrypt(socket, target.tls, target)
    return await startUp(started, target, options.preparedLimit ?? DEFAULT_PREPARED_LIMIT)
  } catch (error) {
    started.destroy()
    if (!expired) throw error
    throw engineError(
      'SERVER_START_TIMEOUT',
      { server: label(target), limit: options.timeoutMs ?? 0 },
      { cause: error },
    )
  } finally {
    timer?.cancel()
  }
}

const label = (target: ServerTarget): string => `${target.host}:${target.port}`

async function encrypt(
  socket: ByteSocket,
  tls: NonNullable<ServerTarget['tls']>,
  target: ServerTarget,
): Promise<ByteSocket> {
  const answer = deferred<number>()
  socket.onClose = () =>
    answer.reject(engineError('SERVER_LOST', { server: label(target) }, { retry: 'safe' }))
  socket.onChunk = (chunk) => {
    socket.pause()
    // anything behind the one byte was not protected by TLS: CVE-2021-23222
    if (chunk.length > 1)
      answer.reject(engineError('SERVER_TLS_STUFFED', { server: label(target) }))
    else answer.resolve(chunk[0] as number)
  }
  socket.write(new FrameWriter(8).beginUntagged().int32(SSL_REQUEST_CODE).end().take())
  const byte = await answer.promise
  if (byte === 0x53) return upgradeToTlsClient(socket, tls.options)
  if (tls.mode === 'require') throw engineError('SERVER_NO_TLS', { server: label(target) })
  socket.resume()
  return socket
}

function startUp(
  socket: ByteSocket,
  target: ServerTarget,
  preparedLimit: number,
): Promise<ServerConnection> {
  const { promise, resolve, reject } = deferred<ServerConnection>()
  const parameters = new Map<string, string>()
  let processId = 0
  let cancelKey: Buffer = Buffer.alloc(4)
  const answers = new PasswordAnswers(target, (bytes) => socket.write(bytes))
  const onFrame = (tag: number, buffer: Buffer, start: number, end: number): void => {
    switch (tag) {
      case backend.authentication:
        answers.answer(buffer.subarray(start + 5, end)).catch(reject)
        break
      case backend.parameterStatus: {
        const name = readCString(buffer, start + 5, end)
        parameters.set(name.text, readCString(buffer, name.next, end).text)
        break
      }
      case backend.backendKeyData:
        processId = buffer.readInt32BE(start + 5)
        cancelKey = Buffer.from(buffer.subarray(start + 9, end))
        break
      case backend.errorResponse:
        reject(serverErrorOf(buffer, start, end))
        break
      case backend.readyForQuery:
        answers.assertServerProved()
        resolve(
          new ServerConnection(target, { socket, parameters, processId, cancelKey, preparedLimit }),
        )
        break
      case backend.noticeResponse:
      case backend.negotiateProtocolVersion:
        break
      default:
        reject(
          engineError('WIRE_UNEXPECTED', {
            tag: String.fromCharCode(tag),
            where: `while server ${label(target)} starts`,
          }),
        )
    }
  }
  const reader = new FrameReader(onFrame)
  socket.onClose = (error) =>
    reject(
      engineError(
        'SERVER_LOST',
        { server: label(target) },
        { ...(error ? { cause: error } : {}), retry: 'safe' },
      ),
    )
  socket.onChunk = (chunk) => {
    try {
      reader.push(chunk)
    } catch (error) {
      reject(error as EngineError)
    }
  }
  socket.write(startupPacket(target))
  return promise
}

function startupPacket(target: ServerTarget): Buffer {
  const writer = new FrameWriter().beginUntagged().int32(PROTOCOL_3_0)
  writer.cstring('user').cstring(target.user).cstring('database').cstring(target.database)
  for (const [name, value] of Object.entries(target.parameters ?? {})) {
    writer.cstring(name).cstring(value)
  }
  return writer.byte(0).end().take()
}
