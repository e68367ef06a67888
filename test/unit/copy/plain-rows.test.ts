import { expect, it } from 'vitest'
import { type CopyOptions, makeCopyOptions } from '../../../src/copy/copy-options.js'
import { LineMap } from '../../../src/copy/line-map.js'
import { PlainRows } from '../../../src/copy/plain/plain-rows.js'
import { makeRowRouter } from '../../../src/copy/row-router.js'
import { toEngineError } from '../../../src/errors/engine-error.js'
import { makeKeyPlacer } from '../../../src/sharding/key-placer.js'
import { makeRandom } from '../../support/random.js'
import { bySize } from '../../support/test-size.js'

interface Input {
  readonly options: CopyOptions
  readonly keyType: 'bigint' | 'integer' | 'smallint'
  readonly keyIndex: number
  readonly buckets: number
  readonly shards: number
  /** Nearly all rows on one shard. */
  readonly isSkewed: boolean
  readonly isBare: boolean
  readonly lends: boolean
  readonly data: Buffer
  readonly chunkBytes: number
  /** Bytes between two COPYs. */
  readonly batchBytes: number
}

const plainKeys = ['0', '1', '-1', '7', '42', '-32767', '12345678', '2147483647', '-2147483647']
const longKeys = ['123456789012345678', '-999999999999999999', '32767', '007', '-0', '00000000001']
const oddKeys = [
  ...[
    '',
    'x',
    '-',
    '+5',
    ' 7',
    '7 ',
    '0x1F',
    '1_000',
    '9223372036854775807',
    '--1',
    '1-',
    '5x',
    '18446744073709551617',
  ],
  ...['-9223372036854775808', '9223372036854775808', '2147483648', '32768', '-32768', '\\N', '"5"'],
]
const plainTexts = ['', 'abc', 'é', ' ', '0', 'x'.repeat(15), 'y'.repeat(16), 'z'.repeat(131)]
const oddTexts = [
  '"a"',
  '"a\nb"',
  '"a""b"',
  'a"b"',
  '\\N',
  '\\.',
  'a\\\nb',
  '\\t',
  'c\rd',
  'w'.repeat(140_000),
]

function makeOptions(next: () => number, format: string, delimiter: string) {
  if (format === 'binary') return { format }
  const marks = ['', 'NULL', '7', '-'].filter((mark) => !mark.includes(delimiter))
  return {
    format,
    delimiter,
    ...(next() < 0.2 ? { null: marks[Math.floor(next() * marks.length)] as string } : {}),
    ...(next() < 0.2 ? { header: 'true' } : {}),
    ...(next() < 0.2 && format === 'csv' ? { quote: next() < 0.5 ? "'" : '~' } : {}),
  }
}

function makeInput(seed: number): Input {
  const next = makeRandom(seed)
  const below = (limit: number) => Math.floor(next() * limit)
  const pick = <T>(items: readonly T[]) => items[below(items.length)] as T
  const format = pick(['csv', 'csv', 'text', 'binary'])
  const keyType = pick(['bigint', 'bigint', 'integer', 'smallint'] as const)
  const keyIndex = below(3)
  const isLong = next() < 0.1
  const oddness = isLong ? 0 : pick([0, 0.002, 0.02, 0.3])
  const delimiter = pick(format === 'csv' ? [',', ',', ';', '|', '-', '3'] : ['\t', '\t', '|'])
  const written = makeOptions(next, format, delimiter)
  const range = { smallint: 0, integer: 3, bigint: plainKeys.length }[keyType]
  const key = () => {
    if (next() < oddness) return pick(oddKeys)
    if (next() < 0.5) return String(below(32_000))
    return pick(
      range === 0
        ? plainKeys.slice(0, 5)
        : [...plainKeys, ...longKeys.slice(keyType === 'bigint' ? 0 : 2)],
    )
  }
  const text = () => (next() < oddness / 4 ? pick(oddTexts) : pick(plainTexts).repeat(1 + below(3)))
  const rows = Array.from({ length: isLong ? 5000 : below(400) }, () => {
    const fields = [text(), text(), text()]
    fields[keyIndex] = key()
    return format === 'binary' ? binaryRow(fields, keyIndex, keyType) : line(fields, delimiter)
  })
  const head =
    format === 'binary'
      ? Buffer.from('5047434f50590aff0d0a000000000000000000', 'hex')
      : Buffer.alloc(0)
  const ends = next() < 0.1 ? '\r\n' : '\n'
  const whole = Buffer.concat([head, ...rows])
  const data =
    format === 'binary' || ends === '\n'
      ? whole
      : Buffer.from(whole.toString('latin1').replaceAll('\n', ends), 'latin1')
  return {
    options: makeCopyOptions(written),
    keyType,
    keyIndex,
    buckets: pick([3, 4, 7, 16, 1000]),
    shards: 1 + below(3),
    isSkewed: next() < 0.3,
    isBare: next() < 0.5,
    lends: next() < 0.5,
    data: next() < 0.1 ? data.subarray(0, data.length - 1 - below(20)) : data,
    chunkBytes: pick([1, 100, 5000, 70_000, 1 << 20]),
    batchBytes: pick([2000, 50_000, Number.POSITIVE_INFINITY]),
  }
}

const line = (fields: readonly string[], delimiter: string): Buffer =>
  Buffer.from(`${fields.join(delimiter)}\n`)

function binaryRow(fields: readonly string[], keyIndex: number, keyType: Input['keyType']): Buffer {
  const parts = fields.map((field, index) => {
    const body = index === keyIndex ? binaryKey(field, keyType) : Buffer.from(field)
    const length = Buffer.alloc(4)
    length.writeInt32BE(body === undefined ? -1 : body.length)
    return Buffer.concat([length, body ?? Buffer.alloc(0)])
  })
  return Buffer.concat([Buffer.from([0, fields.length]), ...parts])
}

/** Odd keys are NULL or of another length. */
function binaryKey(field: string, keyType: Input['keyType']): Buffer | undefined {
  if (field === '') return undefined
  if (!/^-?\d+$/.test(field)) return Buffer.from(field)
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(BigInt.asIntN(64, BigInt(field)))
  return bytes.subarray({ bigint: 0, integer: 4, smallint: 6 }[keyType])
}

/** All that a router says of an input; `plainAfter`: as in its options. */
function route(input: Input, plainAfter: number) {
  const { shards, keyIndex, options, data } = input
  const said = {
    shards: Array.from({ length: shards }, () => [] as string[]),
    rows: [] as number[],
    lines: [] as (number | undefined)[][],
    error: undefined as string | undefined,
    plain: 0,
  }
  const fresh = () => Array.from({ length: shards }, () => new LineMap())
  let maps = fresh()
  const note = () =>
    said.lines.push(...maps.map((map) => Array.from({ length: 420 }, (_, n) => map.lineOf(n + 1))))
  const router = makeRowRouter({
    options,
    layout: { table: 't', columns: ['a', 'b', 'c'], keyIndex, keyIsText: false },
    shardCount: shards,
    placer: makeKeyPlacer({
      column: 'k',
      keyType: input.keyType,
      placement: {
        kind: 'hash',
        hasher: 'postgres',
        buckets: input.buckets,
        bucketMap: Array.from({ length: input.buckets }, (_, bucket) =>
          input.isSkewed ? (bucket % 97 === 0 ? 0 : shards - 1) : (bucket * 7) % shards,
        ),
      },
    }),
    isBare: input.isBare,
    lendsBatches: input.lends,
    plainAfter,
    onRow: (shard, _, at, lines) => maps[shard]!.take(at, lines),
    onPlainRows: (shard, notes) => {
      said.plain += notes.length
      maps[shard]!.takeNotes(notes)
    },
    onBatch: (shard, bytes) => {
      said.shards[shard]!.push(bytes.toString('latin1'))
      if (input.lends) router.giveBack(bytes)
    },
  })
  let sinceBatch = 0
  try {
    for (let at = 0; at < data.length; at += input.chunkBytes) {
      router.push(data.subarray(at, at + input.chunkBytes))
      sinceBatch += input.chunkBytes
      if (sinceBatch < input.batchBytes) continue
      router.flush()
      router.beginAnew()
      note()
      maps = fresh()
      sinceBatch = 0
    }
    router.finish()
  } catch (thrown) {
    const { message, sqlstate, where } = toEngineError(thrown)
    said.error = `${sqlstate} ${message} ${where}`
  }
  note()
  said.rows = [router.rows, router.line, ...router.rowsPerShard, ...router.bytesPerShard]
  const { plain, ...rest } = { ...said, shards: said.shards.map((pieces) => pieces.join('')) }
  return { plain, rest }
}

it('D136: takes plain rows in bulk just as the splitters do, one by one', {
  timeout: 300_000,
}, () => {
  let plain = 0
  let others = 0
  const inputs = bySize(250, 6000)
  for (let seed = 1; seed <= inputs; seed++) {
    const input = makeInput(seed)
    const bulk = route(input, 1)
    const single = route(input, Number.POSITIVE_INFINITY)
    expect(bulk.rest, `seed ${seed}`).toEqual(single.rest)
    plain += bulk.plain
    others += (bulk.rest.rows[0] as number) - bulk.plain
  }
  expect(plain).toBeGreaterThan(inputs * 40)
  expect(others).toBeGreaterThan(inputs * 10)
})

it('leaves to the splitters what no bulk can place', () => {
  const placer = (keyType: 'bigint' | 'text', buckets: number) =>
    makeKeyPlacer({
      column: 'k',
      keyType,
      placement: {
        kind: 'hash',
        hasher: 'postgres',
        buckets,
        bucketMap: new Array(buckets).fill(0),
      },
    })
  const open = (
    keyType: 'bigint' | 'text',
    written: Record<string, string>,
    buckets = 4,
    lanes = 4,
  ) =>
    PlainRows.open({
      options: makeCopyOptions(written),
      layout: { table: 't', columns: ['k'], keyIndex: 0 },
      placer: placer(keyType, buckets),
      lanes,
      inputBytes: 65_536,
      lends: false,
    }) !== undefined
  expect(open('bigint', { format: 'csv' })).toBe(true)
  expect(open('bigint', { format: 'csv' }, 30_720, 64)).toBe(true)
  expect(open('text', { format: 'csv' })).toBe(false)
  expect(open('bigint', { format: 'csv', null: '0' })).toBe(false)
  expect(open('bigint', { format: 'csv', delimiter: '-' })).toBe(false)
  expect(open('bigint', { format: 'csv', default: '-1' })).toBe(false)
  expect(open('bigint', { format: 'csv' }, 30_721)).toBe(false)
  expect(open('bigint', { format: 'csv' }, 4, 65)).toBe(false)
})
