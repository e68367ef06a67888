/**
 * What handing answers on costs, without a network: bytes of a server through the scanner to its client.
 *   npm run build && node bench/relay.mjs [--runs 200000]
 * Nanoseconds an answer of one small row, alone and with eight in one read; and a read of large rows. Rows are handed on
 * as ranges of the read buffer, so that bytes allocated a row must not grow with the row (D58).
 */
import { parseArgs } from 'node:util'
import { ReplyScanner } from '../dist/src/server/reply-scanner.js'
import { ClientOutput } from '../dist/src/session/client-output.js'
import { FrameWriter } from '../dist/src/wire/frame-writer.js'

const { values } = parseArgs({ options: { runs: { type: 'string', default: '200000' } } })
const runs = Number(values.runs)

const frame = (tag, write) => {
  const writer = new FrameWriter(64).begin(tag.charCodeAt(0))
  write(writer)
  return Buffer.from(writer.end().take())
}
const row = (size) => frame('D', (writer) => writer.int16(1).value('x'.repeat(size)))
const complete = frame('C', (writer) => writer.cstring('SELECT 1'))
const ready = frame('Z', (writer) => writer.byte(0x49))
const small = Buffer.concat([row(8), complete, ready])
const eight = Buffer.concat(Array.from({ length: 8 }, () => small))
const large = Buffer.concat(Array.from({ length: 8 }, () => row(8000)))

let written = 0
const socket = {
  writableLength: 0,
  write: (bytes) => {
    written += bytes.length
    return true
  },
}
const output = new ClientOutput(socket)
const scanner = new ReplyScanner({
  rows: (buffer, start, end) => output.forward(buffer, start, end),
  frame: (tag, buffer, start, end) => {
    output.forward(buffer, start, end)
    if (tag === 0x5a) output.flush()
  },
  endOfRead: () => void output.flush(),
})

function best(bytes, count) {
  let least = Number.POSITIVE_INFINITY
  for (let round = 0; round < 5; round++) {
    const from = process.hrtime.bigint()
    for (let i = 0; i < count; i++) scanner.push(bytes)
    least = Math.min(least, Number(process.hrtime.bigint() - from) / count)
  }
  return least
}

console.log(`${best(small, runs).toFixed(0).padStart(6)} ns  an answer alone`)
console.log(
  `${(best(eight, runs / 8) / 8).toFixed(0).padStart(6)} ns  an answer, eight in one read`,
)
console.log(
  `${best(large, runs / 8)
    .toFixed(0)
    .padStart(6)} ns  a read of 64 kB in rows of 8 kB`,
)
const before = process.memoryUsage().heapUsed
const count = 10_000
for (let i = 0; i < count; i++) scanner.push(large)
const grown = Math.max(0, process.memoryUsage().heapUsed - before) / (count * 8)
console.log(`${grown.toFixed(0).padStart(6)} bytes of heap a row of 8 kB, before collection`)
if (written === 0) process.exitCode = 1
