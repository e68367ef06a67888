/**
 * Opens a connection to PostgreSQL: TLS when asked, the startup packet, authentication, until the first ReadyForQuery.
 * @see PostgreSQL documentation, "Start-up" in "Message Flow"
 */

import { systemClock } from '../base/clock.js'
import { deferred } from '../base/deferred.js'
import { type EngineError, engineError } from '../errors/engine-error.js'
import type { ByteSocket } from '../net/byte-socket.js'
import { connectSocket } from '../net/connect.js'
import type { Resolve } from '../net/name-cache.js'
import { FrameReader } from '../wire/frame-reader.js'
import { FrameWriter } from '../wire/frame-writer.js'
import { backend, PROTOCOL_3_0 } from '../wire/tags.js'
import { encrypt } from './encrypt.js'
import { PasswordAnswers } from './password-answers.js'
import { readCString } from './read-cstring.js'
import { ServerConnection } from './server-connection.js'
import { serverErrorOf } from './server-error.js'
import { type CredentialSource, type ServerTarget, socketAddress } from './server-target.js'

export interface OpenServerOptions {
  /** For the whole of it: connect, TLS, login. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** `prepared_statements_limit`. */
  readonly preparedLimit?: number
  /** Default true. */
  readonly keepAlive?: boolean
  readonly keepAliveIdleMs?: number
  /** Absent: names are asked of the system each time. */
  readonly resolve?: Resolve
}

const DEFAULT_PREPARED_LIMIT = 5000

/**
 * @throws NET_CONNECT_FAILED, NET_CONNECT_TIMEOUT, the server's own FATAL, SERVER_START_TIMEOUT, SERVER_LOST,
 *   SERVER_NO_PASSWORD, SERVER_AUTH_UNKNOWN, SERVER_CREDENTIALS_FAILED, AUTH_*
 */
export async function openServer(
  wanted: ServerTarget,
  options: OpenServerOptions = {},
): Promise<ServerConnection> {
  const target = wanted.credentials ? await withCredentials(wanted, wanted.credentials) : wanted
  const { timeoutMs, signal, keepAlive, keepAliveIdleMs, resolve } = options
  const socket = await connectSocket(socketAddress(target), {
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
    ...(signal === undefined ? {} : { signal }),
    ...(keepAlive === undefined ? {} : { keepAlive }),
    ...(keepAliveIdleMs === undefined ? {} : { keepAliveIdleMs }),
    ...(resolve === undefined ? {} : { resolve }),
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
    started = await encrypt(socket, target, timeoutMs)
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

async function withCredentials(
  target: ServerTarget,
  source: CredentialSource,
): Promise<ServerTarget> {
  const { user, password } = await source.get()
  return { ...target, user: user ?? target.user, password }
}

const label = (target: ServerTarget): string => `${target.host}:${target.port}`

function startUp(
  socket: ByteSocket,
  target: ServerTarget,
  preparedLimit: number,
): Promise<ServerConnection> {
  const { promise, resolve, reject } = deferred<ServerConnection>()
  const parameters = new Map<string, string>()
  let processId = 0
  let cancelKey: Buffer = Buffer.alloc(4)
  const answers = new PasswordAnswers(target, socket.tls, (bytes) => socket.write(bytes))
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
