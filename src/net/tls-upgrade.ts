/** TLS over a socket that is already open: after SSLRequest, or at once with ALPN `postgresql`. */
import { isIP, type Socket } from 'node:net'
import {
  type ConnectionOptions,
  connect,
  createSecureContext,
  TLSSocket,
  type TLSSocketOptions,
} from 'node:tls'
import { systemClock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { type ByteSocket, NodeByteSocket } from './byte-socket.js'

/** The ALPN name of PostgreSQL's protocol. */
export const POSTGRESQL_ALPN = 'postgresql'

export interface TlsClientOptions {
  /** Name in the certificate and for SNI; an IP address is checked but not sent. */
  readonly host?: string
  /** `none`: encrypt only (sslmode require); `ca`: trusted chain (verify-ca); `full`: chain and name (verify-full). */
  readonly verify: 'none' | 'ca' | 'full'
  readonly ca?: Buffer | string
  readonly cert?: Buffer | string
  readonly key?: Buffer | string
  readonly timeoutMs?: number
}

export interface TlsServerOptions {
  readonly cert: Buffer | string
  readonly key: Buffer | string
  /** With it client certificates are asked for and checked. */
  readonly ca?: Buffer | string
  readonly requireClientCertificate?: boolean
  readonly timeoutMs?: number
}

/** The old socket is dead afterwards, also on failure. @throws NET_TLS_FAILED */
export function upgradeToTlsClient(
  socket: ByteSocket,
  options: TlsClientOptions,
): Promise<ByteSocket> {
  const raw = rawOf(socket)
  const name = options.host
  const settings: ConnectionOptions = {
    socket: raw,
    ...(name !== undefined && !isIP(name) ? { servername: name } : {}),
    ...(name !== undefined ? { host: name } : {}),
    ...(options.ca !== undefined ? { ca: options.ca } : {}),
    ...(options.cert !== undefined ? { cert: options.cert } : {}),
    ...(options.key !== undefined ? { key: options.key } : {}),
    rejectUnauthorized: options.verify !== 'none',
    minVersion: 'TLSv1.2',
    ALPNProtocols: [POSTGRESQL_ALPN],
    ...(options.verify === 'ca' ? { checkServerIdentity: () => undefined } : {}),
  }
  return finish(connect(settings), 'secureConnect', options.timeoutMs)
}

/** The old socket is dead afterwards, also on failure. @throws NET_TLS_FAILED */
export function upgradeToTlsServer(
  socket: ByteSocket,
  options: TlsServerOptions,
): Promise<ByteSocket> {
  const raw = rawOf(socket)
  const settings: TLSSocketOptions = {
    isServer: true,
    secureContext: createSecureContext({
      cert: options.cert,
      key: options.key,
      ...(options.ca !== undefined ? { ca: options.ca } : {}),
      minVersion: 'TLSv1.2',
    }),
    requestCert: options.ca !== undefined,
    rejectUnauthorized: options.requireClientCertificate ?? false,
    ALPNProtocols: [POSTGRESQL_ALPN],
  }
  return finish(new TLSSocket(raw, settings), 'secure', options.timeoutMs)
}

function rawOf(socket: ByteSocket): Socket {
  const raw = socket instanceof NodeByteSocket ? socket.detach() : undefined
  if (!raw) throw engineError('NET_TLS_FAILED', { reason: 'the connection is closed' })
  return raw
}

function finish(
  secured: TLSSocket,
  event: 'secure' | 'secureConnect',
  timeoutMs: number | undefined,
): Promise<ByteSocket> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string, cause?: Error) => {
      settle()
      secured.on('error', () => undefined)
      secured.destroy()
      reject(engineError('NET_TLS_FAILED', { reason }, cause ? { cause } : {}))
    }
    const onError = (error: Error) => fail(error.message, error)
    const onClose = () => fail('the other side closed the connection')
    const timer = timeoutMs
      ? systemClock.after(timeoutMs, () => fail(`no handshake within ${timeoutMs} ms`))
      : undefined
    const settle = () => {
      timer?.cancel()
      secured.off('error', onError)
      secured.off('close', onClose)
    }
    secured.on('error', onError)
    secured.on('close', onClose)
    secured.once(event, () => {
      const refused = secured.authorizationError
      if (event === 'secure' && refused && rejects(secured)) return fail(String(refused))
      settle()
      const bytes = new NodeByteSocket({ encrypted: true })
      bytes.attach(secured)
      resolve(bytes)
    })
  })
}

/** A bare server-side TLSSocket does not end the connection of an unknown client by itself. */
function rejects(secured: TLSSocket): boolean {
  return (secured as unknown as { _rejectUnauthorized?: boolean })._rejectUnauthorized === true
}
