/** Accepts connections on a TCP port or a Unix socket path. */
import { unlink } from 'node:fs/promises'
import { createServer, type Server, type Socket } from 'node:net'
import { engineError, isEngineError } from '../errors/engine-error.js'
import { type AcceptedHandle, adoptAccepted, takeHandle } from './adopt-accepted.js'
import type { ByteSocket } from './byte-socket.js'
import { connectSocket } from './connect.js'

export interface ListenOptions {
  readonly host?: string
  /** 0: a free one. */
  readonly port?: number
  /** A Unix socket instead of host and port; a file left by a dead process is replaced. */
  readonly path?: string
  readonly backlog?: number
  /** Default true. */
  readonly keepAlive?: boolean
  readonly keepAliveIdleMs?: number
  /** Several processes may listen on the port, and the kernel deals connections out. */
  readonly reusePort?: boolean
}

export interface Listener {
  /** Host as bound; the path of a Unix socket. */
  readonly host: string
  /** The port chosen; 0 for a Unix socket. */
  readonly port: number
  /** Stops accepting; connections already accepted live on. May be called twice. */
  close(): Promise<void>
}

/** `SOMAXCONN` of Linux; the kernel caps it. */
const DEFAULT_BACKLOG = 4096

/** Whether this Node can share a port between processes that listen by themselves (22.12 and later). */
export const canReusePort = (version = process.versions.node): boolean => {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > 22 || (major === 22 && minor >= 12)
}

/**
 * Listens; `onSocket` gets each connection, which reads nothing until its `onChunk` is set.
 * @throws NET_LISTEN_FAILED
 */
export function listen(
  options: ListenOptions,
  onSocket: (socket: ByteSocket) => void,
): Promise<Listener> {
  return listenRaw(options, (accepted) => onSocket(adoptAccepted(accepted)))
}

/** Listens for another process, which adopts the handles. @throws NET_LISTEN_FAILED */
export function listenForHandles(
  options: ListenOptions,
  onHandle: (handle: AcceptedHandle) => void,
): Promise<Listener> {
  return listenRaw(options, (accepted) => onHandle(takeHandle(accepted)))
}

async function listenRaw(
  options: ListenOptions,
  onAccepted: (accepted: Socket) => void,
): Promise<Listener> {
  if (options.path !== undefined) await removeStaleSocket(options.path)
  const idle = options.keepAliveIdleMs
  const server = createServer(
    {
      pauseOnConnect: true,
      noDelay: true,
      keepAlive: options.keepAlive ?? true,
      ...(idle === undefined ? {} : { keepAliveInitialDelay: idle }),
    },
    onAccepted,
  )
  await bind(server, options)
  const bound = server.address()
  const at =
    bound === null || typeof bound === 'string'
      ? { host: options.path ?? '', port: 0 }
      : { host: bound.address, port: bound.port }
  let closing: Promise<void> | undefined
  return {
    ...at,
    close() {
      closing ??= new Promise((resolve) => server.close(() => resolve()))
      return closing
    },
  }
}

function bind(server: Server, options: ListenOptions): Promise<void> {
  const backlog = options.backlog ?? DEFAULT_BACKLOG
  const where =
    options.path !== undefined
      ? { path: options.path, backlog }
      : {
          host: options.host ?? '127.0.0.1',
          port: options.port ?? 0,
          backlog,
          // A Node that cannot do it would ignore the option.
          ...(options.reusePort && canReusePort() ? { reusePort: true } : {}),
        }
  const address = options.path ?? `${options.host ?? '127.0.0.1'}:${options.port ?? 0}`
  return new Promise((resolve, reject) => {
    const onError = (error: NodeJS.ErrnoException) =>
      reject(
        engineError(
          'NET_LISTEN_FAILED',
          { address, reason: reasons[error.code ?? ''] ?? error.code ?? error.message },
          { cause: error },
        ),
      )
    server.once('error', onError)
    server.listen(where, () => {
      server.off('error', onError)
      // An accept that fails (too many open files) is retried by the kernel; it must not end the process.
      server.on('error', () => undefined)
      resolve()
    })
  })
}

const reasons: Record<string, string> = {
  EADDRINUSE: 'the address is in use',
  EACCES: 'permission denied',
  EADDRNOTAVAIL: 'no such address on this machine',
}

/** Removes a socket file on which nobody listens. */
async function removeStaleSocket(path: string): Promise<void> {
  try {
    const socket = await connectSocket({ path }, { timeoutMs: 1000 })
    socket.destroy()
  } catch (error) {
    const cause = isEngineError(error)
      ? (error.cause as NodeJS.ErrnoException | undefined)
      : undefined
    if (cause?.code === 'ECONNREFUSED') await unlink(path)
  }
}
