/** Writing past Node's stream: the order stays, memory is the caller's again, and a socket that has gone is never written to. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { afterEach, expect, test } from 'vitest'
import { adoptHandle, takeHandle } from '../../../src/net/adopt-accepted.js'
import { DirectWriter } from '../../../src/net/direct-write.js'

const open: { end(): void }[] = []
afterEach(() => {
  for (const one of open.splice(0)) one.end()
})

/** Both ends of a connection; the accepted one is paused. */
async function pair(): Promise<{ near: Socket; far: Socket }> {
  const server = createServer({ pauseOnConnect: true, noDelay: true }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const accepted = once(server, 'connection')
  const far = connect((server.address() as AddressInfo).port, '127.0.0.1')
  const [near] = (await accepted) as [Socket]
  const end = () => {
    near.destroy()
    far.destroy()
    server.close()
  }
  open.push({ end })
  return { near, far }
}

test('keeps the order of bytes when the other side reads slowly, and lets memory be used again', async () => {
  const { near, far } = await pair()
  const socket = adoptHandle(takeHandle(near))
  far.pause()
  const memory = Buffer.alloc(10_000)
  const sent: Buffer[] = []
  let wasFull = false
  for (let i = 0; i < 1200; i++) {
    memory.fill(i % 251)
    const end = 5000 + (i % 5000)
    sent.push(Buffer.from(memory.subarray(0, end)))
    wasFull = !socket.writeCopied(memory, 0, end) || wasFull
    const lent = Buffer.alloc(100, i % 250)
    sent.push(lent.subarray(10, 90))
    socket.write(lent, 10, 90)
  }
  memory.fill(255)
  expect(wasFull).toBe(true)
  expect(socket.writableLength).toBeGreaterThan(0)
  const drained = new Promise<void>((resolve) => {
    socket.onDrain = resolve
  })
  const all = Buffer.concat(sent)
  const heard: Buffer[] = []
  let bytes = 0
  const whole = new Promise<void>((resolve) => {
    far.on('data', (chunk) => {
      heard.push(chunk)
      bytes += chunk.length
      if (bytes >= all.length) resolve()
    })
  })
  far.resume()
  await whole
  await drained
  expect(Buffer.concat(heard).equals(all)).toBe(true)
  expect(socket.writableLength).toBe(0)
})

test('writes nothing once its handle has gone, although another socket may have its number', async () => {
  const { near, far } = await pair()
  const writer = DirectWriter.of(near)
  expect(writer?.write(Buffer.from('first'), 0, 5)).toBe(5)
  expect(String((await once(far, 'data'))[0])).toBe('first')
  near.destroy()
  const next = await pair()
  expect(writer?.write(Buffer.from('strange'), 0, 7)).toBe(0)
  const heard: string[] = []
  for (const side of [next.near, next.far]) side.on('data', (chunk) => heard.push(String(chunk)))
  next.near.write('own')
  await once(next.far, 'data')
  expect(heard).toEqual(['own'])
})

test('leaves encrypted sockets to their stream', async () => {
  const { near } = await pair()
  Object.defineProperty(near, 'encrypted', { value: true })
  expect(DirectWriter.of(near)).toBeUndefined()
})
