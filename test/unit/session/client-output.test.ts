import { expect, it } from 'vitest'
import type { ByteSocket } from '../../../src/net/byte-socket.js'
import { ClientOutput } from '../../../src/session/client-output.js'

function outputTo(written: Buffer[]): ClientOutput {
  const socket = {
    writableLength: 0,
    write: (bytes: Buffer, start = 0, end = bytes.length) => {
      written.push(bytes.subarray(start, end))
      return true
    },
    writeCopied: (bytes: Buffer, start: number, end: number) => {
      written.push(Buffer.from(bytes.subarray(start, end)))
      return true
    },
  }
  return new ClientOutput(socket as unknown as ByteSocket)
}

it('D58: a run of rows leaves in one piece of the memory that it was read into', () => {
  const written: Buffer[] = []
  const output = outputTo(written)
  const chunk = Buffer.from('row 1 row 2 row 3 ')
  for (let at = 0; at < chunk.length; at += 6) output.forward(chunk, at, at + 6)
  output.flush()
  expect(written.map(String)).toEqual(['row 1 row 2 row 3 '])
  expect(written[0]?.buffer).toBe(chunk.buffer)
  expect(written[0]?.byteOffset).toBe(chunk.byteOffset)
})

it('what interrupts a run is put in its place, in one write', () => {
  const written: Buffer[] = []
  const output = outputTo(written)
  const chunk = Buffer.from('abcdef')
  output.forward(chunk, 0, 2)
  output.append(Buffer.from('-ours-'))
  output.forward(chunk, 3, 6)
  output.flush()
  expect(written.map(String)).toEqual(['ab-ours-def'])
  expect(output.bytesSent).toBe(11)
})
