/** Opens a connection to one address; tries every address that a name resolves to, in order, as libpq does. */
import { lookup } from 'node:dns/promises'
import { connect, isIP, type NetConnectOpts, type Socket } from 'node:net'
import { systemClock } from '../base/clock.js'
import { type EngineError, engineError } from '../errors/engine-error.js'
import { type ByteSocket, NodeByteSocket, WRITE_HIGH_WATER_BYTES } from './byte-socket.js'
import type { Resolve } from './name-cache.js'
import { ReadBuffer } from './read-buffer.js'

export type SocketAddress =
  | { readonly host: string; readonly port: number }
  /** Path of a Unix socket. */
  | { readonly path: string }

export interface ConnectOptions {
  /** For each address tried; absent or 0: the kernel's. */
  readonly timeoutMs?: number
  readonly signal?: AbortSignal
  /** Default true. */
  readonly noDelay?: boolean
  /** Default true. */
  readonly keepAlive?: boolean
  readonly keepAliveIdleMs?: number
  /** Addresses of a host name, in the order in which they are tried; absent: the system is asked each time. */
  readonly resolve?: Resolve
}

/**
 * Connects; the socket reads nothing until its `onChunk` is set.
 * @throws NET_CONNECT_FAILED, NET_CONNECT_TIMEOUT, NET_HOST_UNKNOWN, INTERRUPTED
 */
export async function connectSocket(
  address: SocketAddress,
  options: ConnectOptions = {},
): Promise<ByteSocket> {
  let failure: EngineError | undefined
  for (const one of await resolveAddress(address, options.resolve)) {
    try {
      return await connectOne(one, options)
    } catch (error) {
      failure = error as EngineError
      if (options.signal?.aborted) break
    }
  }
  throw (
    failure ?? engineError('NET_HOST_UNKNOWN', { host: addressText(address), reason: 'no address' })
  )
}

export function addressText(address: SocketAddress): string {
  if ('path' in address) return address.path
  return address.host.includes(':')
    ? `[${address.host}]:${address.port}`
    : `${address.host}:${address.port}`
}

/** As the system does, anew each time. */
export const resolveName: Resolve = async (host) =>
  (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address)

async function resolveAddress(
  address: SocketAddress,
  resolve: Resolve = resolveName,
): Promise<SocketAddress[]> {
  if ('path' in address || isIP(address.host)) return [address]
  try {
    const found = await resolve(address.host)
    return found.map((host) => ({ host, port: address.port }))
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error)
    throw engineError('NET_HOST_UNKNOWN', { host: address.host, reason }, { cause: error })
  }
}

function connectOne(address: SocketAddress, options: ConnectOptions): Promise<ByteSocket> {
  const where = addressText(address)
  const signal = options.signal
  const aborted = () => engineError('INTERRUPTED', { what: `connecting to ${where}` })
  if (signal?.aborted) return Promise.reject(aborted())
  return new Promise((resolve, reject) => {
    const bytes = new NodeByteSocket({ reader: new ReadBuffer() })
    const socket = openPaused(address, bytes, options)
    const fail = (error: EngineError) => {
      settle()
      socket.on('error', () => undefined)
      socket.destroy()
      reject(error)
    }
    const onAbort = () => fail(aborted())
    const onError = (error: NodeJS.ErrnoException) =>
      fail(
        engineError(
          'NET_CONNECT_FAILED',
          { address: where, reason: error.code ?? error.message },
          { cause: error },
        ),
      )
    const timer = options.timeoutMs
      ? systemClock.after(options.timeoutMs, () =>
          fail(
            engineError('NET_CONNECT_TIMEOUT', {
              address: where,
              timeoutMs: options.timeoutMs as number,
            }),
          ),
        )
      : undefined
    const settle = () => {
      timer?.cancel()
      signal?.removeEventListener('abort', onAbort)
      socket.off('error', onError)
    }
    signal?.addEventListener('abort', onAbort, { once: true })
    socket.on('error', onError)
    socket.once('connect', () => {
      settle()
      bytes.attach(socket)
      resolve(bytes)
    })
  })
}

function openPaused(
  address: SocketAddress,
  bytes: NodeByteSocket,
  options: ConnectOptions,
): Socket {
  const idle = options.keepAliveIdleMs
  const socket = connect({
    ...address,
    noDelay: options.noDelay ?? true,
    keepAlive: options.keepAlive ?? true,
    ...(idle === undefined ? {} : { keepAliveInitialDelay: idle }),
    onread: bytes.onRead,
    writableHighWaterMark: WRITE_HIGH_WATER_BYTES,
    // Names are resolved above; Node's own address race would make several handles for one read buffer.
    autoSelectFamily: false,
  } as unknown as NetConnectOpts)
  socket.pause()
  return socket
}
