import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isEngineError } from '../../src/errors/engine-error.js'
import { FrameReader } from '../../src/wire/frame-reader.js'
import { FrameWriter } from '../../src/wire/frame-writer.js'
import { encodeStartupMessage, StartupReader } from '../../src/wire/startup-messages.js'

const word = fc.string({ minLength: 1 }).filter((s) => !s.includes('\0'))
const startupParameters = fc
  .dictionary(word, word, { maxKeys: 5, noNullPrototype: true })
  .map((record) => new Map(Object.entries(record)))

/** Cuts `bytes` at the places that `cuts` names. */
function chop(stream: Buffer, cuts: readonly number[]): Buffer[] {
  const places = [...new Set(cuts.map((cut) => cut % (stream.length + 1)))].sort((a, b) => a - b)
  const ends = [...places, stream.length]
  return ends.map((end, i) => stream.subarray(i === 0 ? 0 : (ends[i - 1] as number), end))
}

describe('frames', () => {
  const stream = fc
    .array(fc.tuple(fc.integer({ min: 0, max: 255 }), fc.uint8Array({ maxLength: 700 })), {
      maxLength: 30,
    })
    .map((frames) => {
      const writer = new FrameWriter()
      for (const [tag, body] of frames) writer.begin(tag).bytes(body).end()
      return { count: frames.length, bytes: writer.take() }
    })

  it('any chopping of the bytes gives the same frames', () => {
    fc.assert(
      fc.property(stream, fc.array(fc.nat(), { maxLength: 60 }), (all, cuts) => {
        const frames: Buffer[] = []
        const reader = new FrameReader((_tag, buffer, start, end) =>
          frames.push(Buffer.from(buffer.subarray(start, end))),
        )
        for (const piece of chop(all.bytes, cuts)) {
          const borrowed = Buffer.from(piece)
          reader.push(borrowed)
          borrowed.fill(0xee)
        }
        expect(frames.length).toBe(all.count)
        expect(Buffer.concat(frames).equals(all.bytes)).toBe(true)
        expect(reader.pendingBytes).toBe(0)
      }),
    )
  })

  it('one byte at a time gives the same frames', () => {
    fc.assert(
      fc.property(stream, (all) => {
        const frames: Buffer[] = []
        const reader = new FrameReader((_tag, buffer, start, end) =>
          frames.push(Buffer.from(buffer.subarray(start, end))),
        )
        for (const byte of all.bytes) reader.push(Buffer.from([byte]))
        expect(Buffer.concat(frames).equals(all.bytes)).toBe(true)
      }),
      { numRuns: 20 },
    )
  })

  it('arbitrary bytes give frames or a WIRE_ error', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 100 }), { maxLength: 10 }), (chunks) => {
        const reader = new FrameReader(() => undefined)
        try {
          for (const chunk of chunks) reader.push(Buffer.from(chunk))
        } catch (error) {
          expect(isEngineError(error) && error.code).toMatch(/^WIRE_/)
        }
      }),
    )
  })

  it('any chopping of a startup packet gives it whole, and the rest', () => {
    fc.assert(
      fc.property(
        startupParameters,
        fc.uint8Array({ maxLength: 50 }),
        fc.array(fc.nat(), { maxLength: 10 }),
        (parameters, behind, cuts) => {
          const writer = new FrameWriter()
          encodeStartupMessage(writer, { major: 3, minor: 2, parameters })
          const packet = writer.take()
          const reader = new StartupReader()
          let found: { body: Buffer; rest: Buffer } | undefined
          const after: Buffer[] = []
          for (const piece of chop(Buffer.concat([packet, behind]), cuts)) {
            if (found) after.push(piece)
            else found = reader.push(Buffer.from(piece))
          }
          expect(found?.body.equals(packet.subarray(4))).toBe(true)
          expect(Buffer.concat([found?.rest ?? Buffer.alloc(0), ...after])).toEqual(
            Buffer.from(behind),
          )
        },
      ),
    )
  })

  it('a claim of a gigabyte costs no more memory than the bytes that came', () => {
    const before = process.memoryUsage().arrayBuffers
    const readers = Array.from({ length: 50 }, () => {
      const reader = new FrameReader(() => undefined)
      reader.push(Buffer.from([0x64, 0x3f, 0xff, 0xff, 0xf0, 1, 2, 3]))
      return reader
    })
    expect(readers.every((reader) => reader.pendingBytes === 8)).toBe(true)
    expect(process.memoryUsage().arrayBuffers - before).toBeLessThan(1_000_000)
    const limited = new FrameReader(() => undefined, 1000)
    expect(() => limited.push(Buffer.from([0x64, 0, 0, 0x10, 0]))).toThrow(/longer than the limit/)
  })
})
