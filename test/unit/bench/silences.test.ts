/** When a node was silent, brought together from threads. */
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { commonSilences, faultsIn, SilenceBook } from '../../../src/bench/clients/silences.js'

const END = 10_000

function book(goodMs: readonly number[]): SilenceBook {
  const kept = new SilenceBook(0)
  for (const at of [...goodMs].sort((a, b) => a - b)) kept.good(at)
  kept.end()
  return kept
}

describe('silences', () => {
  test('those of two threads are those of one that saw everything', () => {
    const moments = fc.array(fc.integer({ min: 0, max: END }), { maxLength: 40 })
    fc.assert(
      fc.property(moments, moments, (a, b) => {
        expect(commonSilences(book(a).silences, book(b).silences)).toEqual(
          book([...a, ...b]).silences,
        )
      }),
      { seed: 7, numRuns: 500 },
    )
  })

  test('errors are counted where they came', () => {
    const kept = new SilenceBook(0)
    kept.good(100)
    for (const at of [500, 510, 520]) kept.fault('08001', at)
    kept.fault('57P01', 505)
    kept.good(800)
    for (const at of [900, 990]) kept.fault('08001', at)
    kept.end()
    expect(Object.fromEntries(faultsIn(kept.silences[1]!, kept.faults))).toEqual({
      '08001': 3,
      '57P01': 1,
    })
    expect(faultsIn(kept.silences[2]!, kept.faults).get('08001')).toBe(2)
    expect(kept.silences[2]!.toMs).toBe(Number.POSITIVE_INFINITY)
  })

  test('equal errors are one entry for 50 ms, and belong to each silence that they touch', () => {
    const kept = new SilenceBook(0)
    for (const at of [100, 130, 149, 150]) kept.fault('08006', at)
    expect(kept.faults.map(({ firstMs, lastMs, count }) => [firstMs, lastMs, count])).toEqual([
      [100, 149, 3],
      [150, 150, 1],
    ])
    expect(faultsIn({ fromMs: 120, toMs: 140 }, kept.faults).get('08006')).toBe(3)
    expect(faultsIn({ fromMs: 150, toMs: 160 }, kept.faults).get('08006')).toBe(1)
    expect(faultsIn({ fromMs: 160, toMs: 170 }, kept.faults).size).toBe(0)
  })
})
