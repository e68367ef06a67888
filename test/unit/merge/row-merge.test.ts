import { describe, expect, test } from 'vitest'
import { columnsOf, visibleDescription } from '../../../src/merge/rows/columns.js'
import { encodeRowDescription } from '../../../src/wire/backend-messages.js'
import { FrameWriter } from '../../../src/wire/frame-writer.js'
import { ascending, feed, field, mergeAll, openMerge, program, type Value } from './merge-rig.js'

const int8 = 20
const text = 25
const column = (...values: Value[]): Value[][] => values.map((value) => [value])
const first = (rows: (string | null)[][]): (string | null)[] => rows.map(([value]) => value ?? null)

test('groups by a column that is no key of the order are never joined in silence', () => {
  const grouped = { program: program({ order: [ascending(0)], unique: [0, 1], visible: 2 }) }
  const fields = [field(int8), field(int8)]
  expect(() => mergeAll({ ...grouped, fields }, [[['1', '2']]])).toThrow(/grouped by column 1/)
})

describe('ordered merge', () => {
  const byInt = { program: program({ order: [ascending(0)] }), fields: [field(int8)] }

  test('D121: rows of all shards in one order', () => {
    const taken = mergeAll(byInt, [column('1', '5', '30'), column('-2', '4', '100'), []])
    expect(first(taken.texts)).toEqual(['-2', '1', '4', '5', '30', '100'])
  })

  test('D121: NULLS LAST, NULLS FIRST, DESC', () => {
    const down = program({ order: [ascending(0, { descending: true, nullsFirst: true })] })
    expect(first(mergeAll(byInt, [column('1', null), column('0', '2', null)]).texts)).toEqual([
      '0',
      '1',
      '2',
      null,
      null,
    ])
    expect(
      first(mergeAll({ ...byInt, program: down }, [column(null, '1'), column('2', '0')]).texts),
    ).toEqual([null, '2', '1', '0'])
  })

  test('a row leaves as soon as each shard has one or has ended', () => {
    const { merge, taken } = openMerge({ ...byInt, shards: 3 })
    feed(merge, 0, column('1', '2'))
    feed(merge, 1, column('5'))
    expect(taken.rows).toEqual([])
    merge.ended(2)
    expect(first(taken.texts)).toEqual(['1', '2'])
    merge.ended(0)
    expect(first(taken.texts)).toEqual(['1', '2', '5'])
    expect(merge.isComplete).toBe(false)
    merge.ended(1)
    expect(merge.isComplete).toBe(true)
  })

  test('equal rows leave by shard, and within one in their order', () => {
    const two = {
      program: program({ visible: 2, order: [ascending(0)] }),
      fields: [field(int8), field(text)],
    }
    const taken = mergeAll(two, [
      [
        ['1', 'a'],
        ['1', 'b'],
      ],
      [
        ['1', 'c'],
        ['2', 'd'],
      ],
      [['1', 'e']],
    ])
    expect(taken.texts.map(([, name]) => name)).toEqual(['a', 'b', 'c', 'e', 'd'])
  })

  test('a long line of one shard is paused, and resumed when it is waited for', () => {
    const calls: string[] = []
    const { merge } = openMerge({
      ...byInt,
      shards: 2,
      pause: (shard) => calls.push(`pause ${shard}`),
      resume: (shard) => calls.push(`resume ${shard}`),
    })
    const many = column(...Array.from({ length: 20_000 }, (_, i) => String(i)))
    feed(merge, 0, many)
    feed(merge, 0, many)
    expect(calls).toEqual(['pause 0'])
    merge.ended(1)
    expect(calls).toEqual(['pause 0', 'resume 0'])
  })

  test('text without the word that it is in the order of its bytes is refused', () => {
    const order = [{ column: 0, descending: false, nullsFirst: false }]
    const open = () => openMerge({ program: program({ order }), fields: [field(text)], shards: 1 })
    expect(open).toThrowError(expect.objectContaining({ code: 'MERGE_ORDER_TYPE' }))
  })
})

describe('limits', () => {
  const ordered = { order: [ascending(0)] }
  const shards = [column('1', '3', '5', '5'), column('2', '4', '5', '6')]
  const run = (more: object) =>
    first(
      mergeAll({ program: program({ ...ordered, ...more }), fields: [field(int8)] }, shards).texts,
    )

  test('D122: LIMIT and OFFSET after the merge', () => {
    expect(run({ limit: 3n, offset: 2n })).toEqual(['3', '4', '5'])
    expect(run({ limit: 0n })).toEqual([])
    expect(run({ offset: 7n })).toEqual(['6'])
    expect(run({ offset: 70n })).toEqual([])
  })

  test('WITH TIES', () => {
    expect(run({ limit: 5n, withTies: true })).toEqual(['1', '2', '3', '4', '5', '5', '5'])
    expect(run({ limit: 0n, withTies: true })).toEqual([])
  })

  test('ties by the first keys only', () => {
    const fields = [field(int8), field(int8)]
    const order = [ascending(0), ascending(1)]
    const ties = program({ visible: 2, order, limit: 1n, withTies: true, tieKeys: 1 })
    const taken = mergeAll({ program: ties, fields }, [
      [
        ['1', '1'],
        ['2', '0'],
      ],
      [['1', '2']],
    ])
    expect(taken.texts).toEqual([
      ['1', '1'],
      ['1', '2'],
    ])
  })

  test('a reached limit completes the answer while shards still send', () => {
    const { merge, taken } = openMerge({
      program: program({ limit: 2n }),
      fields: [field(int8)],
      shards: 2,
    })
    feed(merge, 1, column('7', '8', '9'))
    expect(merge.isComplete).toBe(true)
    feed(merge, 0, column('1'))
    expect(first(taken.texts)).toEqual(['7', '8'])
    expect(merge.sent).toBe(2)
  })

  test.each([
    ['ordered', ordered],
    ['unordered', {}],
  ])('row limits of a portal: %s', (_, more) => {
    const { merge, taken } = openMerge({ program: program(more), fields: [field(int8)], shards: 2 })
    merge.allow(2)
    feed(merge, 0, column('1', '2', '3'))
    merge.ended(0)
    feed(merge, 1, column('4'))
    merge.ended(1)
    expect(first(taken.texts)).toEqual(['1', '2'])
    expect([merge.isSuspended, merge.isComplete, merge.sent]).toEqual([true, false, 2])
    merge.allow(2)
    expect([merge.isSuspended, merge.isComplete, merge.sent]).toEqual([true, true, 2])
    merge.allow(2)
    expect([merge.isSuspended, merge.isComplete, merge.sent]).toEqual([false, true, 0])
    expect(first(taken.texts)).toEqual(['1', '2', '3', '4'])
  })
})

describe('hidden columns', () => {
  test('D130: they are cut off rows and description', () => {
    const fields = [field(text, 0, 'name'), field(int8, 0, 'hidden')]
    const taken = mergeAll({ program: program({ order: [ascending(1)] }), fields }, [
      [
        ['b', '1'],
        [null, '3'],
      ],
      [['a', '2']],
    ])
    expect(taken.texts).toEqual([['b'], ['a'], [null]])
    const writer = new FrameWriter()
    encodeRowDescription(writer, fields)
    const frame = writer.take()
    const seen = visibleDescription(frame, 0, frame.length, 1)
    expect(columnsOf(seen, 0, seen.length)).toEqual([fields[0]])
  })
})
