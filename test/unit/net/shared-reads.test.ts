import { afterEach, describe, expect, it } from 'vitest'
import { deferred } from '../../../src/base/deferred.js'
import type { ByteSocket } from '../../../src/net/byte-socket.js'
import { connectSocket } from '../../../src/net/connect.js'
import { type Listener, listen } from '../../../src/net/listener.js'
import { waitFor } from '../../support/wait-for.js'

const listeners: Listener[] = []
afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.close()))
})

async function pair(): Promise<{ client: ByteSocket; server: ByteSocket }> {
  const accepted = deferred<ByteSocket>()
  const listener = await listen({}, (socket) => accepted.resolve(socket))
  listeners.push(listener)
  const client = await connectSocket({ host: listener.host, port: listener.port })
  return { client, server: await accepted.promise }
}

const until = (condition: () => boolean, what: string) =>
  waitFor(condition, { what, deadlineMs: 4000, intervalMs: 1 })

describe('accepted sockets, which read into one memory', () => {
  it('share it while their reads are small, and only then', async () => {
    const pairs = [await pair(), await pair()]
    const memories: unknown[] = []
    for (const { client, server } of pairs) {
      const got = deferred<void>()
      server.onChunk = (chunk) => {
        memories.push(chunk.buffer)
        got.resolve()
      }
      client.write(Buffer.from('small'))
      await got.promise
    }
    expect(memories[0]).toBe(memories[1])
    const [first] = pairs
    let last: unknown
    let received = 0
    first!.server.onChunk = (chunk) => {
      last = chunk.buffer
      received += chunk.length
    }
    first!.client.write(Buffer.alloc(200_000))
    await until(() => received === 200_000, 'all bytes')
    expect(last).not.toBe(memories[1])
    first!.client.write(Buffer.from('small'))
    await until(() => received === 200_005, 'the small read')
    first!.client.write(Buffer.from('small'))
    await until(() => received === 200_010, 'the next')
    expect(last).toBe(memories[1])
    for (const { client } of pairs) client.destroy()
  })

  it('keep what waits for a slow reader apart from what the others read', async () => {
    const { client: reader, server: slow } = await pair()
    const pairs = await Promise.all(Array.from({ length: 4 }, () => pair()))
    const block = 4096
    let forwarded = 0
    const counts = pairs.map(() => 0)
    for (const [i, { server }] of pairs.entries())
      server.onChunk = (chunk) => {
        slow.write(chunk)
        counts[i] = (counts[i] as number) + chunk.length
        forwarded += chunk.length
      }
    let sent = 0
    while (slow.writableLength < 1_000_000) {
      for (const [i, { client }] of pairs.entries()) client.write(Buffer.alloc(block, i + 1))
      sent += block * pairs.length
      await until(() => forwarded === sent, 'what was sent')
    }
    const seen = pairs.map(() => 0)
    let received = 0
    reader.onChunk = (chunk) => {
      for (const byte of chunk) seen[byte - 1] = (seen[byte - 1] as number) + 1
      received += chunk.length
    }
    await until(() => received === sent, 'all bytes')
    expect(seen).toEqual(counts)
    for (const { client } of [...pairs, { client: reader }]) client.destroy()
  })
})
