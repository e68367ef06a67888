/** The splitters hold for any bytes in any chunks; csv-parse agrees where its grammar is PostgreSQL's. */
import { parse } from 'csv-parse/sync'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeCopyOptions } from '../../src/copy/copy-options.js'
import type { RowKey, RowSplitter } from '../../src/copy/copy-row.js'
import { makeRowRouter } from '../../src/copy/row-router.js'
import { makeRowSplitter } from '../../src/copy/row-splitter.js'
import { isEngineError } from '../../src/errors/engine-error.js'
import { makeKeyPlacer } from '../../src/sharding/key-placer.js'

const RUNS = Number(process.env['PGSHARD_PROPERTY_RUNS'] ?? 500)
const columns = ['a', 'b', 'c']

const pieces = [
  'x',
  'yz',
  '7',
  ' ',
  ',',
  '\t',
  '"',
  '""',
  '\n',
  '\r\n',
  '\r',
  '\\',
  '\\.',
  '\\N',
  '.',
  'ä',
  '\\x41',
]
const data = fc
  .array(fc.constantFrom(...pieces), { maxLength: 60 })
  .map((parts) => Buffer.from(parts.join('')))
const cuts = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 12 })
const major = fc.constantFrom(15, 18)
const header = fc.constantFrom('true', 'false')
const keyIndex = fc.integer({ min: 0, max: 2 })

interface Seen {
  rows: string[]
  keys: string[]
  lines: number[]
  error: string | undefined
}

function feed(splitter: RowSplitter, input: Buffer, sizes: readonly number[]): Seen {
  const seen: Seen = { rows: [], keys: [], lines: [], error: undefined }
  const sink = {
    header: (bytes: Buffer, start: number, end: number) => {
      seen.rows.push(bytes.toString('latin1', start, end))
    },
    row: (bytes: Buffer, start: number, end: number, key: RowKey) => {
      seen.rows.push(bytes.toString('latin1', start, end))
      seen.keys.push(
        key.kind + (key.kind === 'value' ? key.bytes.toString('latin1', key.start, key.end) : ''),
      )
      seen.lines.push(key.line)
    },
  }
  try {
    for (let at = 0, turn = 0; at < input.length; turn++) {
      const size = sizes[turn % sizes.length] as number
      const chunk = Buffer.from(input.subarray(at, at + size))
      splitter.push(chunk, sink)
      chunk.fill(0)
      at += size
    }
    splitter.finish(sink)
  } catch (error) {
    if (!isEngineError(error)) throw error
    seen.error = `${error.sqlstate} ${error.message} ${error.where}`
  }
  return seen
}

describe.each(['csv', 'text'] as const)('%s', (format) => {
  const open = (serverMajor: number, head: string, key: number) =>
    makeRowSplitter(makeCopyOptions({ format, header: head }), {
      table: 't',
      columns,
      keyIndex: key,
      serverMajor,
    })

  it('D137: gives the same rows, keys, lines and errors in any chunks', () => {
    fc.assert(
      fc.property(data, cuts, major, header, keyIndex, (input, sizes, version, head, key) => {
        const whole = feed(open(version, head, key), input, [Math.max(1, input.length)])
        expect(feed(open(version, head, key), input, sizes)).toEqual(whole)
      }),
      { numRuns: RUNS },
    )
  })

  it('loses and adds no byte', () => {
    fc.assert(
      fc.property(data, cuts, header, (input, sizes, head) => {
        const splitter = makeRowSplitter(makeCopyOptions({ format, header: head }), {
          table: 't',
          columns,
        })
        const { rows, error } = feed(splitter, input, sizes)
        const joined = rows.join('')
        const original = input.toString('latin1')
        if (error !== undefined || splitter.ended) expect(original.startsWith(joined)).toBe(true)
        else expect(joined).toBe(original)
      }),
      { numRuns: RUNS },
    )
  })
})

describe('csv-parse', () => {
  const field = fc.oneof(
    fc.constantFrom('x', '12', 'a b', ''),
    fc
      .array(fc.constantFrom('a', ',', '""', '\n', 'ä'), { maxLength: 6 })
      .map((parts) => `"${parts.join('')}"`),
  )
  const file = fc
    .array(
      fc.tuple(field, field, field).map((fields) => fields.join(',')),
      { minLength: 1, maxLength: 8 },
    )
    .map((lines) => Buffer.from(lines.map((line) => `${line}\n`).join('')))

  it('finds the same records and keys', () => {
    fc.assert(
      fc.property(file, cuts, keyIndex, (input, sizes, key) => {
        const records = parse(input, { skip_empty_lines: false }) as string[][]
        const splitter = makeRowSplitter(makeCopyOptions({ format: 'csv' }), {
          table: 't',
          columns,
          keyIndex: key,
        })
        const { keys } = feed(splitter, input, sizes)
        const plain = keys.map((one) =>
          Buffer.from(one.replace(/^(value|null)/, ''), 'latin1').toString(),
        )
        expect(plain).toEqual(records.map((record) => record[key]))
      }),
      { numRuns: RUNS },
    )
  })
})

describe('binary', () => {
  const field = fc.option(fc.uint8Array({ maxLength: 12 }), { nil: null })
  const file = fc.array(fc.tuple(field, field, field), { maxLength: 6 })
  const encode = (rows: (Uint8Array | null)[][]) => {
    const parts = [Buffer.from('5047434f50590aff0d0a000000000000000003abcdef', 'hex')]
    for (const row of rows) {
      parts.push(Buffer.from([0, 3]))
      for (const one of row) {
        const length = Buffer.alloc(4)
        length.writeInt32BE(one === null ? -1 : one.length)
        parts.push(length, Buffer.from(one ?? []))
      }
    }
    return Buffer.concat(parts)
  }

  it('gives every row and key in any chunks', () => {
    fc.assert(
      fc.property(file, cuts, keyIndex, fc.boolean(), (rows, sizes, key, hasTrailer) => {
        const bare = encode(rows)
        const input = hasTrailer ? Buffer.concat([bare, Buffer.from([255, 255])]) : bare
        const splitter = makeRowSplitter(makeCopyOptions({ format: 'binary' }), {
          table: 't',
          columns,
          keyIndex: key,
        })
        const seen = feed(splitter, input, sizes)
        expect(seen.error).toBeUndefined()
        expect(seen.rows.join('')).toBe(bare.toString('latin1'))
        expect(seen.keys).toEqual(
          rows.map((row) =>
            row[key] === null
              ? 'null'
              : `value${Buffer.from(row[key] as Uint8Array).toString('latin1')}`,
          ),
        )
      }),
      { numRuns: RUNS },
    )
  })

  it('answers arbitrary bytes with rows or one of our errors', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 60 }), cuts, (tail, sizes) => {
        const input = Buffer.concat([encode([]), tail])
        const open = () =>
          makeRowSplitter(makeCopyOptions({ format: 'binary' }), {
            table: 't',
            columns,
            keyIndex: 0,
          })
        expect(feed(open(), input, sizes)).toEqual(feed(open(), input, [input.length]))
      }),
      { numRuns: RUNS },
    )
  })
})

describe('router', () => {
  it('keeps each row whole, in order, on the shard of its key', () => {
    const keys = fc.array(fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }), { maxLength: 40 })
    const placer = makeKeyPlacer({
      column: 'a',
      keyType: 'bigint',
      placement: { kind: 'hash', hasher: 'postgres', buckets: 3, bucketMap: [0, 1, 2] },
    })
    fc.assert(
      fc.property(keys, cuts, (values, sizes) => {
        const lines = values.map((value, row) => `"${value}",${row},"\n"\n`)
        const input = Buffer.from(lines.join(''))
        const shards = ['', '', '']
        const router = makeRowRouter({
          options: makeCopyOptions({ format: 'csv' }),
          layout: { table: 't', columns, keyIndex: 0 },
          shardCount: 3,
          placer,
          onBatch: (shard, bytes) => {
            shards[shard] += bytes.toString()
          },
        })
        for (let at = 0, turn = 0; at < input.length; turn++) {
          const size = sizes[turn % sizes.length] as number
          router.push(input.subarray(at, at + size))
          at += size
        }
        router.finish()
        const expected = shards.map((_, shard) =>
          lines.filter((__, row) => placer.ofString(String(values[row])) === shard).join(''),
        )
        expect(shards).toEqual(expected)
      }),
      { numRuns: RUNS },
    )
  })
})
