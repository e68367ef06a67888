/** TLS over a socket that is already open: after SSLRequest, or at once with ALPN `postgresql`. */
import { constants, X509Certificate } from 'node:crypto'
import { isIP, type Socket } from 'node:net'
import {
  type ConnectionOptions,
  connect,
  createSecureContext,
  type SecureContext,
  TLSSocket,
  type TLSSocketOptions,
} from 'node:tls'
import { systemClock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { type ByteSocket, NodeByteSocket } from './byte-socket.js'
import { peerOf, type TlsFacts } from './tls-facts.js'

/** The ALPN name of PostgreSQL's protocol. */
export const POSTGRESQL_ALPN = 'postgresql'

export type TlsVersion = 'TLSv1.2' | 'TLSv1.3'

export interface TlsClientOptions {
  /** Name in the certificate and for SNI; an IP address is checked but not sent. */
  readonly host?: string
  /** `none`: encrypt only (sslmode require); `ca`: trusted chain (verify-ca); `full`: chain and name (verify-full). */
  readonly verify: 'none' | 'ca' | 'full'
  readonly ca?: Buffer | string
  readonly cert?: Buffer | string
  readonly key?: Buffer | string
  /** TLSv1.2 when absent. */
  readonly minVersion?: TlsVersion
  readonly timeoutMs?: number
}

export interface TlsServerOptions {
  readonly cert: Buffer | string
  readonly key: Buffer | string
  /** With it client certificates are asked for; one that does not verify ends the handshake, one that is missing does not. */
  readonly ca?: Buffer | string
  readonly requireClientCertificate?: boolean
  /** TLSv1.2 when absent. */
  readonly minVersion?: TlsVersion
  readonly timeoutMs?: number
}

/** TLS for accepted sockets, read and checked once. */
export interface TlsServer {
  readonly context: SecureContext
  readonly asksCertificate: boolean
  readonly requiresCertificate: boolean
  /** DER of our certificate. */
  readonly certificate: Buffer
  readonly timeoutMs?: number
}

/** Parses certificate and key, and sees that they belong together. @throws NET_TLS_MATERIAL */
export function prepareTlsServer(options: TlsServerOptions): TlsServer {
  const { cert, key, ca } = options
  const context = checkedContext('tls_certificate and tls_private_key', () =>
    createSecureContext({
      cert,
      key,
      ...(ca === undefined ? {} : { ca }),
      minVersion: options.minVersion ?? 'TLSv1.2',
      // As PostgreSQL does: a session that is taken up again would skip what is asked of its client now. Clients that try
      // all the same need a context to be told no in.
      secureOptions: constants.SSL_OP_NO_TICKET,
      sessionIdContext: 'pgshard',
    }),
  )
  // OpenSSL takes no notice of authorities that it cannot read, and would then trust nobody.
  if (ca !== undefined) checkedContext('tls_client_ca_certificate', () => new X509Certificate(ca))
  return {
    context,
    asksCertificate: ca !== undefined,
    requiresCertificate: options.requireClientCertificate ?? false,
    certificate: new X509Certificate(cert).raw,
    ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
  }
}

/** Sees that what is to be shown to servers, and what is to check them, can be read. @throws NET_TLS_MATERIAL */
export function checkTlsClient(options: Pick<TlsClientOptions, 'ca' | 'cert' | 'key'>): void {
  const { ca, cert, key } = options
  if (cert !== undefined && key !== undefined) {
    checkedContext('tls_server_certificate and tls_server_private_key', () =>
      createSecureContext({ cert, key }),
    )
  }
  if (ca !== undefined) checkedContext('tls_server_ca_certificate', () => new X509Certificate(ca))
}

function checkedContext<T>(what: string, make: () => T): T {
  try {
    return make()
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error)
    throw engineError('NET_TLS_MATERIAL', { what, reason }, { cause: error })
  }
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
    minVersion: options.minVersion ?? 'TLSv1.2',
    ALPNProtocols: [POSTGRESQL_ALPN],
    ...(options.verify === 'ca' ? { checkServerIdentity: () => undefined } : {}),
  }
  return finish(connect(settings), 'secureConnect', options.timeoutMs, (secured) => {
    const peer = secured.getPeerX509Certificate()
    return peer ? { serverCertificate: peer.raw } : {}
  })
}

/**
 * The old socket is dead afterwards, also on failure. `first` is what of the handshake was read already, when the
 * client began with it.
 * @throws NET_TLS_FAILED
 */
export function upgradeToTlsServer(
  socket: ByteSocket,
  tls: TlsServer,
  first?: Buffer,
): Promise<ByteSocket> {
  const raw = rawOf(socket, first)
  const settings: TLSSocketOptions = {
    isServer: true,
    secureContext: tls.context,
    requestCert: tls.asksCertificate,
    rejectUnauthorized: tls.requiresCertificate,
    ALPNProtocols: [POSTGRESQL_ALPN],
  }
  return finish(new TLSSocket(raw, settings), 'secure', tls.timeoutMs, (secured) => ({
    serverCertificate: tls.certificate,
    ...(tls.asksCertificate ? peerOf(secured, tls.requiresCertificate) : {}),
  }))
}

function rawOf(socket: ByteSocket, back?: Buffer): Socket {
  const raw = socket instanceof NodeByteSocket ? socket.detach(back) : undefined
  if (!raw) throw engineError('NET_TLS_FAILED', { reason: 'the connection is closed' })
  return raw
}

function finish(
  secured: TLSSocket,
  event: 'secure' | 'secureConnect',
  timeoutMs: number | undefined,
  factsOf: (secured: TLSSocket) => Omit<TlsFacts, 'version' | 'isPostgresql'>,
): Promise<ByteSocket> {
  return new Promise((resolve, reject) => {
    const fail = (reason: string, cause?: Error) => {
      settle()
      secured.on('error', () => undefined)
      secured.destroy()
      reject(engineError('NET_TLS_FAILED', { reason }, cause ? { cause } : {}))
    }
    const onError = (error: Error) => fail(reasonOf(error), error)
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
      let facts: ReturnType<typeof factsOf>
      try {
        facts = factsOf(secured)
      } catch (error) {
        return fail(error instanceof Error ? error.message : String(error))
      }
      settle()
      const isPostgresql = secured.alpnProtocol === POSTGRESQL_ALPN
      const tls: TlsFacts = { ...facts, version: secured.getProtocol() ?? '', isPostgresql }
      const bytes = new NodeByteSocket({ tls })
      bytes.attach(secured)
      resolve(bytes)
    })
  })
}

/** `80AC…:error:0A0000EB:SSL routines:f:no application protocol:file:line:` says one thing to people. */
function reasonOf(error: Error): string {
  const fields = error.message.split(':')
  return fields[1] === 'error' && fields[5] ? fields[5] : error.message
}
