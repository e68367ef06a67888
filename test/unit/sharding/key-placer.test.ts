import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'
import type { KeyType } from '../../../src/datum/key-type.js'
import { makeKeyPlacer } from '../../../src/sharding/key-placer.js'
import type { Placement, ShardedTable } from '../../../src/sharding/sharded-table.js'
import { binaryOf } from '../../support/key-binary.js'
import { makeRandom } from '../../support/random.js'

const tableOf = (keyType: KeyType, placement: Placement): ShardedTable => ({
  column: 'k',
  keyType,
  placement,
})
const hashed = (keyType: KeyType, n: number, hasher: 'postgres' | 'sha1' = 'postgres') =>
  makeKeyPlacer(
    tableOf(keyType, {
      kind: 'hash',
      hasher,
      buckets: n,
      bucketMap: Array.from({ length: n }, (_, i) => i),
    }),
  )

const lines = readFileSync('fixtures/hash/pg-partition-hash.jsonl', 'utf8')
  .trim()
  .split('\n')
  .map(
    (line) => JSON.parse(line) as { type: KeyType; key: string; shard_of: Record<string, number> },
  )

describe('key placer against recorded partitions', () => {
  it('D4, D64, D101, D102, D108: places all 534 keys in text, string and binary form', () => {
    expect(lines).toHaveLength(534)
    for (const { type, key, shard_of } of lines) {
      for (const [n, shard] of Object.entries(shard_of)) {
        const placer = hashed(type, Number(n))
        const text = Buffer.from(`##${key}##`)
        expect(placer.ofText(text, 2, text.length - 2), `${type} ${key} text`).toBe(shard)
        expect(placer.ofString(key), `${type} ${key} string`).toBe(shard)
        const binary = binaryOf(type, key)
        expect(placer.ofBinary(binary, 0, binary.length), `${type} ${key} binary`).toBe(shard)
      }
    }
  })

  it('agrees with satisfies_hash_partition on the second recording', () => {
    const recorded = JSON.parse(readFileSync('fixtures/hash/pg-hash-partition.json', 'utf8')) as {
      null_key: { bigint: Record<string, number> }
      values: { type: string; input: string; shard: Record<string, number> }[]
    }
    let checked = 0
    for (const { type, input, shard } of recorded.values) {
      if (type === 'boolean') continue
      const keyType = (type === 'character(8)' ? 'bpchar' : type) as KeyType
      for (const [n, expected] of Object.entries(shard)) {
        expect(hashed(keyType, Number(n)).ofString(input), `${type} ${input}`).toBe(expected)
        checked++
      }
    }
    expect(checked).toBeGreaterThan(300)
    for (const [n, expected] of Object.entries(recorded.null_key.bigint)) {
      expect(hashed('bigint', Number(n)).ofNull()).toBe(expected)
    }
  })

  it("follows PgDog's sha1 vector", () => {
    const expected = [4, 7, 8, 3, 6, 0, 0, 10, 3, 11, 1, 7, 4, 4, 11, 2, 5, 0, 8, 3]
    const placer = hashed('bigint', 12, 'sha1')
    expect(expected.map((_, id) => placer.ofString(String(id)))).toEqual(expected)
    expect(() => hashed('numeric', 2, 'sha1')).toThrow(/sha1/)
  })
})

const failure = (run: () => unknown): string => {
  try {
    return `placed ${String(run())}`
  } catch (error) {
    return (error as { sqlstate: string }).sqlstate
  }
}

describe('text forms', () => {
  const same = (type: KeyType, a: string, b: string) => {
    for (const n of [2, 3, 5, 7, 64]) {
      expect(hashed(type, n).ofString(a), `${a} = ${b}`).toBe(hashed(type, n).ofString(b))
    }
  }
  it('reads what PostgreSQL reads', () => {
    same('bigint', ' 42 ', '42')
    same('bigint', '+7', '7')
    same('bigint', '0007', '7')
    same('bigint', '-0', '0')
    same('bigint', '0x1F', '31')
    same('bigint', '1_000', '1000')
    same('bigint', '0000000000000000000000000000042', '42')
    same('uuid', '{3F2504E0-4F8911D3-9A0C-0305E82C3301}', '3f2504e0-4f89-11d3-9a0c-0305e82c3301')
    same('uuid', '3f2504e04f8911d39a0c0305e82c3301', '3f2504e0-4f89-11d3-9a0c-0305e82c3301')
    same('numeric', '1e3', '1000.00')
    same('numeric', ' .5e1 ', '5')
    same('numeric', '-inf', '-Infinity')
    same('date', '20240229', '2024-02-29')
    same('timestamptz', '2024-02-29T12:00:00Z', '2024-02-29 13:30:00+01:30')
    same('timestamp', '2024-02-29 24:00:00', '2024-03-01')
    same('bpchar', 'ab   ', 'ab')
  })
  it.each([
    ['bigint', '9223372036854775808', '22003'],
    ['bigint', '-9223372036854775809', '22003'],
    ['bigint', '99999999999999999999999999', '22003'],
    ['integer', '2147483648', '22003'],
    ['smallint', '-32769', '22003'],
    ['bigint', '', '22P02'],
    ['bigint', ' ', '22P02'],
    ['bigint', '4 2', '22P02'],
    ['bigint', '1.0', '22P02'],
    ['bigint', '99999999999999999999x', '22003'],
    ['bigint', '--1', '22P02'],
    ['uuid', ' 3f2504e0-4f89-11d3-9a0c-0305e82c3301', '22P02'],
    ['uuid', '3f2504e0-4f89-11d3-9a0c-0305e82c330', '22P02'],
    ['uuid', '{3f2504e0-4f89-11d3-9a0c-0305e82c3301', '22P02'],
    ['numeric', '.', '22P02'],
    ['numeric', '1e', '22P02'],
    ['numeric', '-NaN', '22P02'],
    ['date', '2023-02-29', '22008'],
    ['date', '1/2/2024', '0A000'],
    ['date', 'today', '0A000'],
    ['timestamptz', '2024-01-01 00:00:00', '0A000'],
  ] as const)('refuses %s %j with %s', (type, text, sqlstate) => {
    expect(failure(() => hashed(type, 4).ofString(text))).toBe(sqlstate)
  })
})

describe('lists and ranges', () => {
  it('D4, D104: compares list values by type and maps NULL only where it is listed', () => {
    const entries = [
      { values: ['1', '2.50'], shard: 0 },
      { values: ['NaN', null], shard: 1 },
    ]
    const placer = makeKeyPlacer(tableOf('numeric', { kind: 'list', entries }))
    expect(placer.ofString('1.000')).toBe(0)
    expect(placer.ofString('25e-1')).toBe(0)
    expect(placer.ofString('nan')).toBe(1)
    expect(placer.ofNull()).toBe(1)
    expect(failure(() => placer.ofString('3'))).toBe('23514')
    const other = makeKeyPlacer(
      tableOf('numeric', { kind: 'list', entries: entries.slice(0, 1), fallback: 3 }),
    )
    expect(other.ofString('3')).toBe(3)
    expect(other.ofNull()).toBe(3)
  })
  it('D4, D105: takes starts in and ends out, and refuses NULL without a default', () => {
    const placer = makeKeyPlacer(
      tableOf('bigint', {
        kind: 'range',
        entries: [
          { end: '0', shard: 0 },
          { start: '0', end: '9007199254740993', shard: 1 },
          { start: '9007199254740993', shard: 2 },
        ],
      }),
    )
    expect(placer.ofString('-1')).toBe(0)
    expect(placer.ofString('0')).toBe(1)
    expect(placer.ofString('9007199254740992')).toBe(1)
    expect(placer.ofString('9007199254740993')).toBe(2)
    expect(failure(() => placer.ofNull())).toBe('23514')
    const at = (value: string, inclusive: boolean) => ({ value, inclusive })
    expect(placer.ofRange(at('-5', true), at('0', false))).toEqual({ kind: 'some', shards: [0] })
    expect(placer.ofRange(at('-5', true), at('0', true))).toEqual({ kind: 'some', shards: [0, 1] })
    expect(placer.ofRange(at('1', true), undefined)).toEqual({ kind: 'some', shards: [1, 2] })
  })
})

describe('lists and ranges in one mapping', () => {
  const placer = makeKeyPlacer(
    tableOf('bigint', {
      kind: 'list',
      entries: [{ values: ['7', null], shard: 3 }],
      ranges: [
        { end: '5', shard: 0 },
        { start: '5', end: '10', shard: 1 },
      ],
    }),
  )
  const at = (value: string, inclusive = true) => ({ value, inclusive })

  it('D110: a listed value counts before its range; what neither has has no shard', () => {
    expect(['4', '5', '6', '7', '9'].map((key) => placer.ofString(key))).toEqual([0, 1, 1, 3, 1])
    expect(placer.ofNull()).toBe(3)
    expect(failure(() => placer.ofString('10'))).toBe('23514')
  })

  it('bounds reach the ranges and the listed values between them', () => {
    expect(placer.ofRange(at('5'), at('6'))).toEqual({ kind: 'some', shards: [1] })
    expect(placer.ofRange(at('5'), at('7'))).toEqual({ kind: 'some', shards: [1, 3] })
    expect(placer.ofRange(at('5'), at('7', false))).toEqual({ kind: 'some', shards: [1] })
    expect(placer.ofRange(at('7', false), undefined)).toEqual({ kind: 'some', shards: [1] })
    expect(placer.ofRange(at('10'), undefined)).toEqual({ kind: 'some', shards: [] })
  })
})

describe('vectors', () => {
  const centroids = [
    [0, 0, 0],
    [1, 1, 1],
    [1, 1, 1],
    [-4, 0.5, 9],
  ]
  const placer = makeKeyPlacer(
    tableOf('vector', { kind: 'centroids', centroids, shards: [0, 1, 2, 3] }),
  )
  const binary = (values: readonly number[]) => {
    const bytes = Buffer.alloc(4 + 4 * values.length)
    bytes.writeInt16BE(values.length)
    for (const [i, value] of values.entries()) bytes.writeFloatBE(value, 4 + 4 * i)
    return bytes
  }

  it('D4, D13, D107: go to the shard of the nearest centroid by L2, of several to the first', () => {
    expect(placer.ofString('[0.4,0.4,0.4]')).toBe(0)
    expect(placer.ofString(' [ .9 , 1e0 , 0.8 ] ')).toBe(1)
    expect(placer.ofString('[0.5,0.5,0.5]')).toBe(0)
    expect(placer.ofString('[-3,0,8]')).toBe(3)
    const bytes = binary([-3, 0, 8])
    expect(placer.ofBinary(bytes, 0, bytes.length)).toBe(3)
  })

  it('D107, D109: the typed loop finds what a naive one finds, in text and binary', () => {
    const random = makeRandom(107)
    const centres = Array.from({ length: 50 }, () =>
      Array.from({ length: 33 }, () => Math.fround(random() * 20 - 10)),
    )
    const shards = centres.map((_, i) => i)
    const many = makeKeyPlacer(tableOf('vector', { kind: 'centroids', centroids: centres, shards }))
    const distance = (a: readonly number[], b: readonly number[]) =>
      Math.sqrt(a.reduce((sum, one, i) => sum + (one - b[i]!) ** 2, 0))
    for (let round = 0; round < 300; round++) {
      const vector = Array.from({ length: 33 }, () => Math.fround(random() * 20 - 10))
      const bytes = binary(vector)
      const found = many.ofBinary(bytes, 0, bytes.length)
      const least = Math.min(...centres.map((centre) => distance(centre, vector)))
      expect(distance(centres[found]!, vector) - least).toBeLessThan(1e-6)
      expect(many.ofString(`[${vector.join(',')}]`)).toBe(found)
    }
  })

  it.each([
    ['[1,2]', '22000'],
    ['[1,2,x]', '22P02'],
    ['1,2,3', '22P02'],
    ['[]', '22P02'],
    ['[1,2,1e39]', '22003'],
    ['[1,2,0x1p3]', '0A000'],
    // Just above the middle of two floats: a double cannot tell on which side.
    ['[1,2,1.00000005960464477540]', '0A000'],
  ])('refuses %s with %s', (text, sqlstate) => {
    expect(failure(() => placer.ofString(text))).toBe(sqlstate)
  })

  it('refuses NULL, and binary forms that are none', () => {
    expect(failure(() => placer.ofNull())).toBe('23514')
    const bytes = binary([1, 2, Number.NaN])
    expect(failure(() => placer.ofBinary(bytes, 0, bytes.length))).toBe('22P03')
    expect(failure(() => placer.ofBinary(bytes, 0, bytes.length - 1))).toBe('22P03')
  })
})
