/** What a login reads: whole messages whatever the pieces, and never more than a bound from who has not logged in. */
import { describe, expect, test } from 'vitest'
import type { ByteSocket } from '../../../../src/net/byte-socket.js'
import { LoginChannel } from '../../../../src/session/login/login-channel.js'

class FakeSocket implements ByteSocket {
  onChunk: (chunk: Buffer) => void = () => undefined
  onDrain: () => void = () => undefined
  onClose: (error?: Error) => void = () => undefined
  readonly writableLength = 0
  readonly remoteAddress = '127.0.0.1'
  readonly remotePort = 1
  readonly encrypted = false
  isPaused = false

  write(): boolean {
    return true
  }

  writeCopied(): boolean {
    return true
  }

  pause(): void {
    this.isPaused = true
  }

  resume(): void {
    this.isPaused = false
  }

  readonly isFull = false

  holdOpen(): void {
    throw new Error('not for a login')
  }

  end(): void {
    // nothing to close
  }

  destroy(): void {
    // nothing to close
  }
}

const answer = (text: string): Buffer => {
  const head = Buffer.alloc(5)
  head.write('p')
  head.writeInt32BE(4 + text.length, 1)
  return Buffer.concat([head, Buffer.from(text)])
}

describe('the channel of a login', () => {
  test('gives answers whole, one by one, whatever the pieces, and keeps what follows', async () => {
    const bytes = Buffer.concat([answer('first'), answer('second'), Buffer.from('rest')])
    for (let size = 1; size <= bytes.length; size++) {
      const socket = new FakeSocket()
      const channel = new LoginChannel(socket)
      for (let at = 0; at < bytes.length; at += size) socket.onChunk(bytes.subarray(at, at + size))
      expect((await channel.answer()).toString()).toBe('first')
      expect((await channel.answer()).toString()).toBe('second')
      expect(Buffer.concat(channel.takeRest()).toString()).toBe('rest')
    }
  })

  test('stops reading from who sends on, and goes on when it is needed', async () => {
    const socket = new FakeSocket()
    const channel = new LoginChannel(socket)
    const big = answer('x'.repeat(60_000))
    let sent = 0
    while (!socket.isPaused && sent < 10_000_000) {
      socket.onChunk(big)
      sent += big.length
    }
    expect(sent).toBeLessThan(300_000)
    await channel.answer()
    expect(socket.isPaused).toBe(false)
  })

  test('a client that leaves ends what is awaited', async () => {
    const socket = new FakeSocket()
    const channel = new LoginChannel(socket)
    const waiting = channel.answer()
    socket.onChunk(Buffer.from('p'))
    socket.onClose()
    await expect(waiting).rejects.toMatchObject({ code: 'LOGIN_LEFT' })
  })
})
