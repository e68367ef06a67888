/** Conversations that no client would hold: right ones with something wrong in them, and bytes that are none. */
import { encodeBind, encodeFunctionCall } from '../../src/wire/frontend-messages.js'
import { encodeCancelRequest, encodeStartupMessage } from '../../src/wire/startup-messages.js'
import { say, written } from '../support/wire-client.js'

export type Random = (below: number) => number

const pick = <T>(random: Random, from: readonly T[]): T => from[random(from.length)] as T
const bytes = (random: Random, length: number): Buffer =>
  Buffer.from(Array.from({ length }, () => random(256)))

/** Lengths that code forgets: nothing, less than the length itself, negative, huge. */
const LENGTHS = [
  0, 1, 3, 4, 5, 7, 8, 9, 255, 65_535, 0x3fff_ffff, 0x7fff_ffff, -1, -2, -0x8000_0000,
]
/** As counts of Int16. */
const COUNTS = [0, 1, 2, 3, 255, 32_767, 32_768, 65_535]

function changed(random: Random, original: Buffer): Buffer {
  const copy = Buffer.from(original)
  if (copy.length === 0) return bytes(random, 1 + random(16))
  const at = random(copy.length)
  switch (random(7)) {
    case 0:
      copy[at] = random(256)
      return copy
    case 1:
      copy[at] = (copy[at] as number) ^ (1 << random(8))
      return copy
    case 2:
      return copy.subarray(0, at)
    case 3:
      return Buffer.concat([copy.subarray(0, at), bytes(random, 1 + random(8)), copy.subarray(at)])
    case 4:
      return Buffer.concat([
        copy.subarray(0, at),
        copy.subarray(Math.min(copy.length, at + 1 + random(8))),
      ])
    case 5:
      if (copy.length >= 5) copy.writeInt32BE(pick(random, LENGTHS), random(copy.length - 3))
      return copy
    default:
      if (copy.length >= 2) copy.writeUInt16BE(pick(random, COUNTS), random(copy.length - 1))
      return copy
  }
}

/** A few changes, or none. */
export function spoiled(random: Random, original: Buffer): Buffer {
  let copy = original
  for (let changes = random(4); changes > 0; changes--) copy = changed(random, copy)
  return copy
}

const startup = (user: string, parameters: Record<string, string> = {}): Buffer =>
  written((writer) =>
    encodeStartupMessage(writer, {
      major: 3,
      minor: 0,
      parameters: new Map([['user', user], ['database', 'app'], ...Object.entries(parameters)]),
    }),
  )

/** What stands before a login: packets without a tag. */
export function startupBytes(random: Random): Buffer {
  const untagged = (code: number) => {
    const packet = Buffer.alloc(8)
    packet.writeInt32BE(8, 0)
    packet.writeInt32BE(code, 4)
    return packet
  }
  const ordinary = startup('postgres', {
    options: pick(random, ['-c a=b', '-c', '--x', '\\ \\', '-c work_mem=1MB']),
    client_encoding: pick(random, ['UTF8', 'latin1', 'nonsense', '']),
  })
  switch (random(8)) {
    case 0:
      return bytes(random, random(64))
    case 1:
      return Buffer.concat([untagged(80_877_103), bytes(random, random(64))])
    case 2:
      return Buffer.concat([untagged(80_877_104), spoiled(random, ordinary)])
    case 3:
      return written((writer) =>
        encodeCancelRequest(writer, {
          processId: random(2 ** 31),
          secret: bytes(random, 4 + random(40)),
        }),
      )
    case 4:
      return Buffer.concat([Buffer.from([0x16, 3, 1]), bytes(random, random(128))])
    case 5:
      return Buffer.concat([
        untagged(pick(random, [196_608, 196_610, 131_072, 0, -1])),
        bytes(random, 8),
      ])
    default:
      return spoiled(random, ordinary)
  }
}

const tagged = (tag: string, body: Buffer): Buffer => {
  const frame = Buffer.alloc(5 + body.length)
  frame.write(tag, 0, 'latin1')
  frame.writeInt32BE(4 + body.length, 1)
  body.copy(frame, 5)
  return frame
}

/** A login that goes wrong somewhere in its password messages. */
export function authBytes(random: Random): Buffer {
  const mechanism = pick(random, ['SCRAM-SHA-256', 'SCRAM-SHA-256-PLUS', 'PLAIN', ''])
  const first = pick(random, [
    'n,,n=,r=abcdefghijklmnopqrstuvwx',
    'y,,n=,r=abc',
    'p=tls-server-end-point,,n=,r=abc',
    'n,a=root,n=,r=abc',
    'n,,m=x,n=,r=abc',
    '',
  ])
  const initial = Buffer.concat([
    Buffer.from(`${mechanism}\0`),
    (() => {
      const length = Buffer.alloc(4)
      length.writeInt32BE(pick(random, [first.length, first.length, -1, 0, 70_000]))
      return length
    })(),
    Buffer.from(first),
  ])
  const final = Buffer.from(
    pick(random, [
      'c=biws,r=abc,p=AAAA',
      'c=biws',
      `c=biws,r=${'x'.repeat(500)},p=${'A'.repeat(44)}`,
      '',
    ]),
  )
  return Buffer.concat([
    startup('postgres'),
    spoiled(random, tagged(pick(random, ['p', 'p', 'p', 'Q', 'X']), initial)),
    spoiled(random, tagged('p', final)),
  ])
}

/** A Bind whose numbers need not fit together. */
function bind(random: Random): Buffer {
  const value = (): Buffer | null =>
    pick(random, [
      null,
      Buffer.alloc(0),
      Buffer.from('1'),
      Buffer.from([0, 0, 0, 7]),
      bytes(random, random(40)),
    ])
  return written((writer) =>
    encodeBind(writer, {
      portal: pick(random, ['', 'p', 'nobody']),
      statement: pick(random, ['', 's', 'nobody']),
      formats: Array.from({ length: random(4) }, () => pick(random, [0, 1, 2, -1])),
      values: Array.from({ length: random(5) }, value),
      resultFormats: Array.from({ length: random(3) }, () => pick(random, [0, 1, 7])),
    }),
  )
}

/** Frames after a login. */
export function frameBytes(random: Random): Buffer {
  const one = (): Buffer => {
    switch (random(12)) {
      case 0:
        return say.query(
          pick(random, [
            'select 1',
            'begin',
            'rollback',
            '',
            ';;',
            "select 'a'; select 2",
            'nonsense',
          ]),
        )
      case 1:
        return say.parse(
          pick(random, ['', 's', 't']),
          pick(random, ['select $1::int', 'select $1, $2', '', 'select']),
        )
      case 2:
        return say.describe(pick(random, ['', 's', 'nobody']))
      case 3:
        return say.close(pick(random, ['', 's', 'nobody']))
      case 4:
        return say.execute(pick(random, [0, 1, -1]))
      case 5:
        return say.sync()
      case 6:
        return written((writer) =>
          encodeFunctionCall(writer, {
            functionOid: random(5000),
            formats: [],
            values: [null],
            resultFormat: 0,
          }),
        )
      case 7:
        return tagged(
          pick(random, ['d', 'c', 'f', 'H', 'X', 'p', 'Z', '\0', 'é']),
          bytes(random, random(12)),
        )
      default:
        return Buffer.concat([
          say.parse('', 'select $1::int'),
          bind(random),
          say.execute(),
          say.sync(),
        ])
    }
  }
  const conversation = Buffer.concat(Array.from({ length: 1 + random(6) }, one))
  return spoiled(random, conversation)
}

/** Binds alone: frames are whole, what stands in them is not. */
export function bindBytes(random: Random): Buffer {
  const frame = bind(random)
  const body = spoiled(random, frame.subarray(5))
  return Buffer.concat([
    say.parse('', pick(random, ['select $1::int', 'select $1::text, $2::bytea', 'select 1'])),
    tagged('B', body),
    say.execute(),
    say.sync(),
  ])
}
