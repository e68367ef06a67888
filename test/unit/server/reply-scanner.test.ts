import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { ReplyScanner } from '../../../src/server/reply-scanner.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'

interface Frame {
  tag: number
  body: Uint8Array
}

const frames = fc.array(
  fc.record({
    tag: fc.constantFrom(...'DDDdTCZ1N'.split('').map((letter) => letter.charCodeAt(0))),
    body: fc.uint8Array({ maxLength: 40 }),
  }),
  { maxLength: 12 },
)

const bytesOf = (list: Frame[]): Buffer => {
  const writer = new FrameWriter()
  for (const frame of list) writer.begin(frame.tag).bytes(frame.body).end()
  return writer.take()
}

/** Everything that the receiver hears, joined; frames and rows apart. */
function scan(bytes: Buffer, cuts: number[], wholeRows: boolean) {
  const heard: Buffer[] = []
  const others: string[] = []
  let isWhole = true
  const scanner = new ReplyScanner({
    wholeRows,
    rows: (buffer, start, end) => {
      heard.push(Buffer.from(buffer.subarray(start, end)))
      if (!wholeRows) return
      let at = start
      while (at < end) at += buffer.length - at >= 5 ? buffer.readInt32BE(at + 1) + 1 : end
      isWhole &&= at === end
    },
    frame: (tag, buffer, start, end) => {
      heard.push(Buffer.from(buffer.subarray(start, end)))
      others.push(String.fromCharCode(tag))
    },
    endOfRead: () => undefined,
  })
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  let from = 0
  for (const place of [...places, bytes.length]) {
    scanner.push(Buffer.from(bytes.subarray(from, place)))
    from = place
  }
  return { all: Buffer.concat(heard), others, isWhole }
}

describe('reply scanner', () => {
  it('hands on every byte once and in order, however the stream is cut', () => {
    fc.assert(
      fc.property(frames, fc.array(fc.nat(600)), fc.boolean(), (list, cuts, wholeRows) => {
        const bytes = bytesOf(list)
        const heard = scan(bytes, cuts, wholeRows)
        expect(heard.all.equals(bytes)).toBe(true)
        const rows = new Set(['D', 'd'])
        expect(heard.others).toEqual(
          list.map((frame) => String.fromCharCode(frame.tag)).filter((letter) => !rows.has(letter)),
        )
        if (wholeRows) expect(heard.isWhole).toBe(true)
      }),
    )
  })

  it('holds back nothing of a long row that has not arrived whole', () => {
    let passed = 0
    const scanner = new ReplyScanner({
      rows: (_buffer, start, end) => {
        passed += end - start
      },
      frame: () => undefined,
      endOfRead: () => undefined,
    })
    const row = new FrameWriter().begin(0x44).bytes(Buffer.alloc(100_000)).end().take()
    scanner.push(row.subarray(0, 60_000))
    expect(passed).toBe(60_000)
  })

  it('does not use the memory of a row again that came in two reads: a write may still refer to it', () => {
    const lent: Buffer[] = []
    const scanner = new ReplyScanner({
      wholeRows: true,
      rows: (buffer, start, end) => lent.push(buffer.subarray(start, end)),
      frame: () => undefined,
      endOfRead: () => undefined,
    })
    const rows = ['first', 'other'].map((text) => bytesOf([{ tag: 0x44, body: Buffer.from(text) }]))
    for (const row of rows) {
      scanner.push(Buffer.from(row.subarray(0, 7)))
      scanner.push(Buffer.from(row.subarray(7)))
    }
    expect(lent).toEqual(rows)
  })

  it('refuses a length below four', () => {
    const scanner = new ReplyScanner({
      rows: () => undefined,
      frame: () => undefined,
      endOfRead: () => undefined,
    })
    expect(() => scanner.push(Buffer.from([0x5a, 0, 0, 0, 3]))).toThrow(/invalid length 3/)
  })
})
