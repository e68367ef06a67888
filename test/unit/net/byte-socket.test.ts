import { createHash } from 'node:crypto'
import { existsSync, mkdtempSync } from 'node:fs'
import { createConnection, createServer, Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, describe, expect, it } from 'vitest'
import { deferred } from '../../../src/base/deferred.js'
import { adoptAccepted } from '../../../src/net/adopt-accepted.js'
import type { ByteSocket } from '../../../src/net/byte-socket.js'
import { connectSocket } from '../../../src/net/connect.js'
import { type Listener, listen } from '../../../src/net/listener.js'

const listeners: Listener[] = []
afterEach(async () => {
  await Promise.all(listeners.splice(0).map((listener) => listener.close()))
})

async function pair(): Promise<{ client: ByteSocket; server: ByteSocket; listener: Listener }> {
  const accepted = deferred<ByteSocket>()
  const listener = await listen({}, (socket) => accepted.resolve(socket))
  listeners.push(listener)
  const client = await connectSocket({ host: listener.host, port: listener.port })
  return { client, server: await accepted.promise, listener }
}

async function until(condition: () => boolean, what: string): Promise<void> {
  const deadline = Date.now() + 4000
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`gave up waiting: ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}

describe('byte sockets', () => {
  it('end when the other side does, unless they are held open for what is still to come', async () => {
    for (const isHeld of [false, true]) {
      const accepted = deferred<ByteSocket>()
      const listener = await listen({}, (socket) => accepted.resolve(socket))
      listeners.push(listener)
      const client = createConnection({ host: listener.host, port: listener.port })
      const events: string[] = []
      client.on('data', (data) => events.push(`${data}`)).on('close', () => events.push('closed'))
      client.end('half')
      const server = await accepted.promise
      if (isHeld) server.holdOpen()
      let hasRead = false
      server.onChunk = () => {
        hasRead = true
      }
      await until(() => hasRead, 'the half')
      if (isHeld) {
        // long enough for a FIN of its own to arrive
        const { client: other, server: peer } = await pair()
        const echoed = deferred<void>()
        peer.onChunk = (chunk) => void peer.write(Buffer.from(chunk))
        other.onChunk = () => echoed.resolve()
        other.write(Buffer.from('round trip'))
        await echoed.promise
        await new Promise((resolve) => setTimeout(resolve, 50))
        other.destroy()
        expect(events).toEqual([])
        server.end(Buffer.from('answer'))
      }
      await until(() => events.includes('closed'), 'the end')
      expect(events).toEqual(isHeld ? ['answer', 'closed'] : ['closed'])
    }
  })

  it('carries bytes both ways and closes once on both sides', async () => {
    const { client, server } = await pair()
    const seen: string[] = []
    const closes: string[] = []
    const bothClosed = deferred<void>()
    const closed = (who: string) => {
      closes.push(who)
      if (closes.length === 2) bothClosed.resolve()
    }
    server.onClose = () => closed('server')
    client.onClose = () => closed('client')
    server.onChunk = (chunk) => {
      seen.push(`server ${chunk}`)
      server.end(Buffer.from('bye'))
    }
    client.onChunk = (chunk) => seen.push(`client ${chunk}`)
    client.write(Buffer.from('hello'))
    await bothClosed.promise
    expect(seen).toEqual(['server hello', 'client bye'])
    expect(closes.sort()).toEqual(['client', 'server'])
    expect(client.remoteAddress).toBe('127.0.0.1')
    expect(client.encrypted).toBe(false)
  })

  it('keeps bytes that arrive before onChunk is set', async () => {
    const { client, server } = await pair()
    client.write(Buffer.from('early'))
    await new Promise((resolve) => setTimeout(resolve, 20))
    const got = deferred<string>()
    server.onChunk = (chunk) => got.resolve(chunk.toString())
    expect(await got.promise).toBe('early')
    client.destroy()
  })

  it('reads both ends through onread, in reused memory', async () => {
    const { client, server } = await pair()
    const memories = { client: new Set<unknown>(), server: new Set<unknown>() }
    let rounds = 0
    const done = deferred<void>()
    server.onChunk = (chunk) => {
      memories.server.add(chunk.buffer)
      server.write(Buffer.from(chunk))
    }
    client.onChunk = (chunk) => {
      memories.client.add(chunk.buffer)
      if (++rounds === 50) return done.resolve()
      client.write(Buffer.from('ping'))
    }
    client.write(Buffer.from('ping'))
    await done.promise
    expect([memories.client.size, memories.server.size]).toEqual([1, 1])
    client.destroy()
  })

  it('pause stops reading from the kernel, resume goes on', async () => {
    const { client, server } = await pair()
    let received = 0
    server.onChunk = (chunk) => {
      received += chunk.length
    }
    server.pause()
    const block = Buffer.alloc(65_536, 1)
    let sent = 0
    while (client.writableLength < 1_000_000 && sent < 100_000_000) {
      client.write(block)
      sent += block.length
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(client.writableLength).toBeGreaterThan(900_000)
    expect(received).toBe(0)
    const drained = deferred<void>()
    client.onDrain = () => drained.resolve()
    server.resume()
    await drained.promise
    await until(() => received === sent, 'all bytes')
    client.destroy()
  })

  it('keeps in order what Node reads a tick after pause, and closes after it', async () => {
    const { client, server } = await pair()
    client.write(Buffer.from('one '))
    await new Promise((resolve) => setTimeout(resolve, 10))
    const seen: string[] = []
    const closed = deferred<void>()
    server.onChunk = (chunk) => seen.push(chunk.toString())
    server.onClose = () => {
      seen.push('close')
      closed.resolve()
    }
    server.pause()
    await new Promise((resolve) => setTimeout(resolve, 10))
    client.end(Buffer.from('two'))
    await new Promise((resolve) => setTimeout(resolve, 10))
    expect(seen).toEqual([])
    server.resume()
    await closed.promise
    expect(seen.join('')).toBe('one twoclose')
  })

  it('says false only while the queue is long, and then drains', async () => {
    const { client, server } = await pair()
    server.pause()
    server.onChunk = () => undefined
    let drains = 0
    client.onDrain = () => drains++
    expect(client.write(Buffer.alloc(100))).toBe(true)
    while (client.write(Buffer.alloc(65_536))) await new Promise((r) => setImmediate(r))
    expect(drains).toBe(0)
    server.resume()
    await until(() => drains === 1, 'drain')
    expect(client.writableLength).toBe(0)
    client.destroy()
  })

  it('gives an error and the close when the other side resets', async () => {
    const { client, server } = await pair()
    const gone = deferred<Error | undefined>()
    client.onClose = (error) => gone.resolve(error)
    client.onChunk = () => undefined
    const raw = (server as unknown as { detach(): Socket }).detach()
    raw.resetAndDestroy()
    expect(((await gone.promise) as NodeJS.ErrnoException).code).toBe('ECONNRESET')
  })

  it('end sends all that is queued even when the reader is slow', async () => {
    const { client, server } = await pair()
    server.pause()
    let received = 0
    const closed = deferred<void>()
    server.onChunk = (chunk) => {
      received += chunk.length
    }
    server.onClose = () => closed.resolve()
    for (let i = 0; i < 100; i++) client.write(Buffer.alloc(65_536))
    client.end(Buffer.from('last'))
    expect(client.write(Buffer.from('too late'))).toBe(true)
    server.resume()
    await closed.promise
    expect(received).toBe(100 * 65_536 + 4)
  })

  it('works over a Unix socket and replaces the file of a dead process', async () => {
    const path = join(mkdtempSync(join(tmpdir(), 'byte-socket-')), '.s.PGSQL.1')
    const dead = createServer().listen(path)
    await until(() => existsSync(path), 'socket file')
    // An unclean end leaves the file: closing the handle only would remove it.
    const handle = (dead as unknown as { _handle: { close(): void } })._handle
    const { renameSync } = await import('node:fs')
    renameSync(path, `${path}.kept`)
    handle.close()
    renameSync(`${path}.kept`, path)
    const got = deferred<string>()
    const listener = await listen({ path }, (socket) => {
      socket.onChunk = (chunk) => got.resolve(`${socket.remoteAddress} ${chunk}`)
    })
    listeners.push(listener)
    const client = await connectSocket({ path })
    client.write(Buffer.from('hi'))
    expect(await got.promise).toBe('[local] hi')
    client.destroy()
  })
})

describe('an accepted socket whose handle cannot lend memory', () => {
  it('is read by its data events, paused and resumed as well', async () => {
    const adopted = deferred<ByteSocket>()
    const server = createServer({ pauseOnConnect: true }, (accepted) => {
      const holder = accepted as unknown as { _handle: { useUserBuffer: unknown } }
      holder._handle.useUserBuffer = undefined
      adopted.resolve(adoptAccepted(accepted))
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    const { port } = server.address() as { port: number }
    const client = await connectSocket({ host: '127.0.0.1', port })
    const socket = await adopted.promise
    const seen: string[] = []
    socket.onChunk = (chunk) => seen.push(chunk.toString())
    client.write(Buffer.from('one'))
    await until(() => seen.length === 1, 'first chunk')
    socket.pause()
    client.write(Buffer.from('two'))
    await new Promise((resolve) => setTimeout(resolve, 20))
    expect(seen).toEqual(['one'])
    socket.resume()
    await until(() => seen.length === 2, 'second chunk')
    client.destroy()
    server.close()
  })
})

describe('lent memory', () => {
  it('survives a stalled reader: 100 MB through a relay, hash equal', async () => {
    const total = 100 * 1024 * 1024
    const sink = deferred<string>()
    const target = createServer((socket) => {
      const hash = createHash('sha256')
      let received = 0
      let stalls = 0
      socket.on('data', (chunk) => {
        hash.update(chunk)
        received += chunk.length
        if (received > stalls * 8_000_000) {
          stalls++
          socket.pause()
          setTimeout(() => socket.resume(), 20)
        }
        if (received === total) sink.resolve(hash.digest('hex'))
      })
    })
    await new Promise<void>((resolve) => target.listen(0, '127.0.0.1', resolve))
    const targetPort = (target.address() as { port: number }).port
    let pauses = 0
    const memories = new Set<unknown>()
    const relay = await listen({}, (inbound) => {
      inbound.pause()
      void connectSocket({ host: '127.0.0.1', port: targetPort }).then((outbound) => {
        outbound.onChunk = () => undefined
        outbound.onDrain = () => inbound.resume()
        inbound.onChunk = (chunk) => {
          memories.add(chunk.buffer)
          if (outbound.write(chunk)) return
          pauses++
          inbound.pause()
        }
        inbound.onClose = () => outbound.end()
        inbound.resume()
      })
    })
    listeners.push(relay)
    const source = createConnection(relay.port, relay.host)
    const hash = createHash('sha256')
    let sent = 0
    let seed = 1
    const push = () => {
      while (sent < total) {
        const block = Buffer.allocUnsafe(Math.min(100_003, total - sent))
        for (let i = 0; i + 4 <= block.length; i += 4) {
          seed = (seed * 1_103_515_245 + 12_345) & 0x7fffffff
          block.writeInt32LE(seed, i)
        }
        hash.update(block)
        sent += block.length
        if (!source.write(block)) return source.once('drain', push)
      }
      return undefined
    }
    push()
    const received = await sink.promise
    expect(received).toBe(hash.digest('hex'))
    // How often depends on the kernel's buffers; never would mean that nothing stalled.
    expect(pauses).toBeGreaterThan(0)
    expect(memories.size).toBeGreaterThan(1)
    source.destroy()
    target.close()
  }, 30_000)
})

describe('connecting', () => {
  it('says what failed, by code', async () => {
    const listener = await listen({}, () => undefined)
    await listener.close()
    await expect(connectSocket({ host: '127.0.0.1', port: listener.port })).rejects.toMatchObject({
      code: 'NET_CONNECT_FAILED',
      message: `could not connect to 127.0.0.1:${listener.port}: ECONNREFUSED`,
      retry: 'safe',
      exitCode: 4,
    })
    await expect(connectSocket({ path: '/nowhere/.s.PGSQL.1' })).rejects.toMatchObject({
      code: 'NET_CONNECT_FAILED',
    })
    await expect(connectSocket({ host: 'no.such.host.invalid', port: 1 })).rejects.toMatchObject({
      code: 'NET_HOST_UNKNOWN',
    })
  })

  it('tries every address of a name', async () => {
    const listener = await listen({ host: '127.0.0.1' }, () => undefined)
    listeners.push(listener)
    const socket = await connectSocket({ host: 'localhost', port: listener.port })
    expect(socket.remotePort).toBe(listener.port)
    socket.destroy()
  })

  it('stops at the signal and at the time-out', async () => {
    const abort = new AbortController()
    abort.abort()
    await expect(
      connectSocket({ host: '127.0.0.1', port: 9 }, { signal: abort.signal }),
    ).rejects.toMatchObject({ code: 'INTERRUPTED' })
    // A full backlog leaves the connection unanswered.
    const silent = await listen({ backlog: 1 }, () => undefined)
    listeners.push(silent)
    const original = Socket.prototype.emit
    Socket.prototype.emit = function (this: Socket, event: string | symbol, ...rest: unknown[]) {
      if (event === 'connect') return true
      return original.call(this, event as 'timeout', ...(rest as []))
    } as typeof original
    try {
      await expect(
        connectSocket({ host: silent.host, port: silent.port }, { timeoutMs: 30 }),
      ).rejects.toMatchObject({ code: 'NET_CONNECT_TIMEOUT' })
    } finally {
      Socket.prototype.emit = original
    }
  })

  it('names a port that is in use', async () => {
    const first = await listen({}, () => undefined)
    listeners.push(first)
    await expect(listen({ port: first.port }, () => undefined)).rejects.toMatchObject({
      code: 'NET_LISTEN_FAILED',
      message: `could not listen on 127.0.0.1:${first.port}: the address is in use`,
    })
  })

  it('close of the listener leaves accepted sockets alone', async () => {
    const { client, server, listener } = await pair()
    await listener.close()
    const got = deferred<string>()
    server.onChunk = (chunk) => got.resolve(chunk.toString())
    client.write(Buffer.from('still here'))
    expect(await got.promise).toBe('still here')
    client.destroy()
  })
})
