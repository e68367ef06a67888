import { describe, expect, it } from 'vitest'
import { numbersAt } from '../../../src/catalog/read-numbers.js'
import { ReplyScanner } from '../../../src/server/reply-scanner.js'
import { typesOnShard } from '../../../src/server/shard-numbers.js'
import { decodeRowDescription } from '../../../src/wire/backend-messages.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import { backend } from '../../../src/wire/tags.js'

const own = {
  types: new Map([
    ['public.mood', 20_001],
    ['public.only_here', 20_009],
    ['public.same', 20_003],
  ]),
  tables: new Map([['public.t', 20_005]]),
}
const home = {
  types: new Map([
    ['public.mood', 16_500],
    ['public.same', 20_003],
  ]),
  tables: new Map([['public.t', 16_502]]),
}
const numbers = numbersAt(own, home)

function description(): Buffer {
  const writer = new FrameWriter().begin(backend.rowDescription).int16(3)
  for (const [name, table, type] of [
    ['a', 20_005, 20_001],
    ['b', 0, 23],
    ['c', 20_005, 20_009],
  ] as const)
    writer.cstring(name).int32(table).int16(1).int32(type).int16(4).int32(-1).int16(0)
  writer.end()
  writer.begin(backend.parameterDescription).int16(2).int32(20_001).int32(25).end()
  return writer.take()
}

/** All frames, in whatever way they are handed on. */
function scanned(bytes: Buffer, step: number, passesPlain: boolean): Buffer {
  const parts: Buffer[] = []
  const take = (buffer: Buffer, start: number, end: number) => {
    parts.push(Buffer.from(buffer.subarray(start, end)))
  }
  const scanner = new ReplyScanner({
    passesPlain,
    rows: take,
    frame: (_, buffer, start, end) => take(buffer, start, end),
    endOfRead: () => undefined,
  })
  scanner.numbers = { current: numbers }
  for (let at = 0; at < bytes.length; at += step) {
    scanner.push(Buffer.from(bytes.subarray(at, at + step)))
  }
  return Buffer.concat(parts)
}

describe('numbers of types and tables', () => {
  it.each([
    [1, false],
    [7, true],
    [1000, false],
    [1000, true],
  ])('of descriptions become those of shard 0 (%i bytes a read, plain %s)', (step, passesPlain) => {
    const told = scanned(description(), step, passesPlain)
    const columns = decodeRowDescription(told.subarray(5, 1 + told.readInt32BE(1)))
    expect(columns.map(({ typeOid, tableOid }) => [tableOid, typeOid])).toEqual([
      [16_502, 16_500],
      [0, 23],
      [16_502, 20_009],
    ])
    const at = told.length - 8
    expect([told.readUInt32BE(at), told.readUInt32BE(at + 4)]).toEqual([16_500, 25])
  })

  it('that a client declares become those of the shard', () => {
    expect(typesOnShard([16_500, 23, 0], numbers)).toEqual([20_001, 23, 0])
    const types = [23, 25]
    expect(typesOnShard(types, numbers)).toBe(types)
    expect(typesOnShard([16_500], undefined)).toEqual([16_500])
  })
})
