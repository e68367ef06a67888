/** Puts TLS on a connection to a server, as its target asks: by SSLRequest, or at once (`sslnegotiation=direct`, PostgreSQL 17). */
import { deferred } from '../base/deferred.js'
import { engineError } from '../errors/engine-error.js'
import type { ByteSocket } from '../net/byte-socket.js'
import { upgradeToTlsClient } from '../net/tls-upgrade.js'
import { FrameWriter } from '../wire/frame-writer.js'
import { SSL_REQUEST_CODE } from '../wire/tags.js'
import type { ServerTarget } from './server-target.js'

/**
 * The encrypted socket; the given one when the target has no TLS, or prefers it and the server has none.
 * @throws SERVER_NO_TLS, SERVER_TLS_STUFFED, SERVER_LOST, NET_TLS_FAILED
 */
export async function encrypt(
  socket: ByteSocket,
  target: ServerTarget,
  timeoutMs?: number,
): Promise<ByteSocket> {
  const { tls } = target
  if (!tls) return socket
  const options = timeoutMs === undefined ? tls.options : { ...tls.options, timeoutMs }
  const server = `${target.host}:${target.port}`
  if (tls.negotiation === 'direct') {
    const direct = await upgradeToTlsClient(socket, options)
    if (direct.tls?.isPostgresql) return direct
    // Without ALPN another service may have been made to talk to us (ALPACA).
    direct.destroy()
    throw engineError('SERVER_NO_TLS', { server }, { hint: directHint })
  }
  const answer = deferred<number>()
  socket.onClose = () => answer.reject(engineError('SERVER_LOST', { server }, { retry: 'safe' }))
  socket.onChunk = (chunk) => {
    socket.pause()
    // anything behind the one byte was not protected by TLS: CVE-2021-23222
    if (chunk.length > 1) answer.reject(engineError('SERVER_TLS_STUFFED', { server }))
    else answer.resolve(chunk[0] as number)
  }
  socket.write(sslRequest)
  const byte = await answer.promise
  if (byte === 0x53) return await upgradeToTlsClient(socket, options)
  if (tls.mode === 'require') throw engineError('SERVER_NO_TLS', { server })
  socket.resume()
  return socket
}

const directHint =
  'the server does not speak PostgreSQL by direct TLS; that needs PostgreSQL 17, else leave sslnegotiation at postgres'

const sslRequest = new FrameWriter(8).beginUntagged().int32(SSL_REQUEST_CODE).end().take()
