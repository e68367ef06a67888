import { afterEach, describe, expect, it } from 'vitest'
import { ScramServer } from '../../../src/auth/scram-server.js'
import { type Listener, listen } from '../../../src/net/listener.js'
import { openServer } from '../../../src/server/open-server.js'
import { decodeSaslInitialResponse, encodeAuthentication } from '../../../src/wire/auth-messages.js'
import { encodeReadyForQuery } from '../../../src/wire/backend-messages.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import { TX_IDLE } from '../../../src/wire/tags.js'

let listener: Listener | undefined
afterEach(() => listener?.close())

/** A server that speaks SCRAM; `end` makes what it says after the client's proof, all in one write. */
async function fakeServer(end: (scram: ScramServer, proof: Buffer) => Buffer | undefined) {
  listener = await listen({}, (socket) => {
    const scram = new ScramServer({ user: 'u', secrets: ['pencil'] })
    let step = 0
    const writer = new FrameWriter()
    socket.onChunk = (chunk) => {
      step++
      if (step === 1) encodeAuthentication(writer, { kind: 'sasl', mechanisms: ['SCRAM-SHA-256'] })
      if (step === 2) {
        const { response } = decodeSaslInitialResponse(chunk.subarray(5))
        const bytes = scram.first(response as Buffer)
        encodeAuthentication(writer, { kind: 'saslContinue', bytes })
      }
      if (step === 3) {
        const bytes = end(scram, chunk.subarray(5))
        if (bytes) encodeAuthentication(writer, { kind: 'saslFinal', bytes })
        encodeAuthentication(writer, { kind: 'ok' })
        encodeReadyForQuery(writer, TX_IDLE)
      }
      socket.write(writer.take())
    }
  })
  const { host, port } = listener
  return openServer(
    { host, port, user: 'u', database: 'd', password: 'pencil' },
    { timeoutMs: 2000 },
  )
}

describe('a server that asks for SCRAM', () => {
  it('is taken when it proves itself, even with all its messages in one read', async () => {
    const server = await fakeServer((scram, proof) => scram.final(proof))
    expect(server.isIdle).toBe(true)
    server.destroy()
  })

  it('is refused with a wrong signature, or with none', async () => {
    const unproved = { code: 'AUTH_SERVER_UNPROVED' }
    await expect(fakeServer(() => Buffer.from('v=AAAA'))).rejects.toMatchObject(unproved)
    await listener?.close()
    await expect(fakeServer(() => undefined)).rejects.toMatchObject(unproved)
  })
})
