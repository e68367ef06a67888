import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { connect as connectTls } from 'node:tls'
import { afterEach, describe, expect, it } from 'vitest'
import { deferred } from '../../../src/base/deferred.js'
import type { ByteSocket } from '../../../src/net/byte-socket.js'
import { connectSocket } from '../../../src/net/connect.js'
import { type Listener, listen } from '../../../src/net/listener.js'
import {
  prepareTlsServer,
  type TlsClientOptions,
  type TlsServerOptions,
  upgradeToTlsClient,
  upgradeToTlsServer,
} from '../../../src/net/tls-upgrade.js'

const cert = (name: string) =>
  readFileSync(join(import.meta.dirname, '../../../fixtures/certs', name))
const serverCert = { cert: cert('server.crt'), key: cert('server.key') }

let listener: Listener | undefined
afterEach(() => listener?.close())

/** Plain `S?` → `S`, then TLS on both sides, as after SSLRequest. */
async function tlsPair(
  client: TlsClientOptions,
  server: TlsServerOptions,
): Promise<[PromiseSettledResult<ByteSocket>, PromiseSettledResult<ByteSocket>]> {
  const serverSide = deferred<ByteSocket>()
  listener = await listen({}, (socket) => {
    socket.onChunk = () => {
      socket.write(Buffer.from('S'))
      upgradeToTlsServer(socket, prepareTlsServer(server)).then(
        serverSide.resolve,
        serverSide.reject,
      )
    }
  })
  const plain = await connectSocket({ host: listener.host, port: listener.port })
  const ready = deferred<void>()
  plain.onChunk = () => ready.resolve()
  plain.write(Buffer.from('S?'))
  await ready.promise
  const both = await Promise.allSettled([upgradeToTlsClient(plain, client), serverSide.promise])
  return both
}

const opened = (result: PromiseSettledResult<ByteSocket>): ByteSocket => {
  if (result.status === 'rejected') throw result.reason
  return result.value
}

describe('TLS', () => {
  it('carries a megabyte each way, after an upgrade on both sides', async () => {
    const [c, s] = await tlsPair(
      { host: 'localhost', verify: 'full', ca: cert('ca.crt') },
      serverCert,
    )
    const client = opened(c)
    const server = opened(s)
    expect([client.encrypted, server.encrypted]).toEqual([true, true])
    expect(client.remotePort).toBe(listener?.port)
    let back = 0
    const done = deferred<void>()
    server.onChunk = (chunk) => void server.write(Buffer.from(chunk))
    client.onChunk = (chunk) => {
      back += chunk.length
      if (back === 1_000_000) done.resolve()
    }
    for (let i = 0; i < 10; i++) client.write(Buffer.alloc(100_000, i))
    await done.promise
    const closed = deferred<void>()
    server.onClose = () => closed.resolve()
    client.end()
    await closed.promise
  })

  it('verifies the chain and the name when asked to', async () => {
    const [unknownCa] = await tlsPair({ host: 'localhost', verify: 'ca' }, serverCert)
    expect(unknownCa).toMatchObject({ status: 'rejected', reason: { code: 'NET_TLS_FAILED' } })
    await listener?.close()
    const [wrongName] = await tlsPair(
      { host: 'elsewhere', verify: 'full', ca: cert('ca.crt') },
      serverCert,
    )
    expect(wrongName).toMatchObject({ status: 'rejected', reason: { code: 'NET_TLS_FAILED' } })
    await listener?.close()
    const [nameIgnored] = await tlsPair(
      { host: 'elsewhere', verify: 'ca', ca: cert('ca.crt') },
      serverCert,
    )
    opened(nameIgnored).destroy()
    await listener?.close()
    const [encryptOnly] = await tlsPair({ verify: 'none' }, serverCert)
    opened(encryptOnly).destroy()
  })

  it('refuses a client without a certificate when one is required', async () => {
    const strict = { ...serverCert, ca: cert('ca.crt'), requireClientCertificate: true }
    const [, s] = await tlsPair({ verify: 'none' }, strict)
    expect(s).toMatchObject({ status: 'rejected', reason: { code: 'NET_TLS_FAILED' } })
    await listener?.close()
    const known = { cert: cert('client.crt'), key: cert('client.key') }
    const [c2, s2] = await tlsPair({ verify: 'none', ...known }, strict)
    opened(c2).destroy()
    opened(s2).destroy()
  })

  it.each(['TLSv1.2', 'TLSv1.3'] as const)(
    'takes up no session again (%s), and serves who tries',
    async (version) => {
      const tls = prepareTlsServer({ ...serverCert, ca: cert('ca.crt') })
      listener = await listen({}, (socket) => {
        socket.onChunk = (first) => {
          socket.pause()
          void upgradeToTlsServer(socket, tls, Buffer.from(first)).then((secured) => {
            secured.onChunk = () =>
              secured.end(Buffer.from(secured.tls?.peer?.commonName ?? 'nobody'))
          })
        }
      })
      const { host, port } = listener
      const attempt = (session: Buffer | undefined) =>
        new Promise<{ said: string; isReused: boolean; session: Buffer | undefined }>(
          (resolve, reject) => {
            let said = ''
            let kept: Buffer | undefined
            const socket = connectTls({
              host,
              port,
              rejectUnauthorized: false,
              ALPNProtocols: ['postgresql'],
              minVersion: version,
              maxVersion: version,
              cert: cert('client.crt'),
              key: cert('client.key'),
              ...(session ? { session } : {}),
            })
            socket.on('session', (made) => {
              kept = made
            })
            let isReused = false
            socket.on('secureConnect', () => {
              isReused = socket.isSessionReused()
              kept ??= socket.getSession()
              socket.write('who am I?')
            })
            socket.on('data', (chunk) => {
              said += chunk
            })
            socket.on('error', reject)
            socket.on('close', () => resolve({ said, isReused, session: kept }))
          },
        )
      const first = await attempt(undefined)
      const second = await attempt(first.session)
      expect([first.said, second.said]).toEqual(['alice', 'alice'])
      expect(second.isReused).toBe(false)
    },
  )

  it('gives up on a client that stays silent', async () => {
    const refused = deferred<unknown>()
    listener = await listen({}, (socket) => {
      upgradeToTlsServer(socket, prepareTlsServer({ ...serverCert, timeoutMs: 30 })).catch(
        refused.resolve,
      )
    })
    const client = await connectSocket({ host: listener.host, port: listener.port })
    const closed = deferred<void>()
    client.onClose = () => closed.resolve()
    client.onChunk = () => undefined
    expect(await refused.promise).toMatchObject({ code: 'NET_TLS_FAILED' })
    await closed.promise
  })
})
