import { describe, expect, test } from 'vitest'
import { chiSquare, upperGamma } from '../../../src/bench/report/chi-square.js'

describe('chi-square', () => {
  // Critical values of printed tables.
  test.each([
    [1, 3.841, 0.05],
    [1, 10.828, 0.001],
    [2, 5.991, 0.05],
    [2, 13.816, 0.001],
    [5, 20.515, 0.001],
    [10, 18.307, 0.05],
    [100, 124.342, 0.05],
  ])('%d degrees of freedom, %d', (df, statistic, p) => {
    expect(upperGamma(df / 2, statistic / 2)).toBeCloseTo(p, 4)
  })

  test.each([
    ['three equal entries', [300, 341, 359], [1, 1, 1], 5.49, 0.064],
    ['three equal entries again', [662, 672, 666], [1, 1, 1], 0.08, 0.96],
    ['one entry twice', [525, 981, 494], [1, 2, 1], 1.68, 0.43],
  ])('%s', (_, counts, shares, statistic, p) => {
    const found = chiSquare(counts, shares)
    expect(found?.statistic).toBeCloseTo(statistic, 1)
    expect(found?.p).toBeCloseTo(p, 2)
  })

  test('one node has nothing to compare', () => expect(chiSquare([5], [1])).toBeUndefined())
})
