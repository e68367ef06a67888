/** A relay that lies: in messages of one kind from the server it writes another's tag in place of a client's. */
import { connect, createServer } from 'node:net'
import { FrameReader } from '../../src/wire/frame-reader.js'

export interface TagForger {
  readonly port: number
  close(): Promise<void>
}

/** In messages of `kind` (a letter), `from` becomes `to`, which is as long. */
export async function startTagForger(
  port: number,
  lie: { kind: string; from: string; to: string },
): Promise<TagForger> {
  const server = createServer((client) => {
    const upstream = connect(port, '127.0.0.1')
    const reader = new FrameReader((tag, buffer, start, end) => {
      const frame = Buffer.from(buffer.subarray(start, end))
      if (String.fromCharCode(tag) === lie.kind) {
        for (let at = frame.indexOf(lie.from); at >= 0; at = frame.indexOf(lie.from, at))
          frame.write(lie.to, at, 'latin1')
      }
      client.write(frame)
    })
    client.on('data', (chunk) => upstream.write(chunk))
    upstream.on('data', (chunk) => reader.push(chunk))
    client.on('error', () => upstream.destroy()).on('close', () => upstream.destroy())
    // a cancel request is answered by closing, without a message
    upstream.on('error', () => client.destroy()).on('close', () => client.end())
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port: own } = server.address() as { port: number }
  return {
    port: own,
    close: () => new Promise((resolve) => server.close(() => resolve())),
  }
}
