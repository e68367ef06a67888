/** Whatever rows are at fault and whatever a server names: every other row is loaded once, in order, and each bad one comes back. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { engineError } from '../../../../src/errors/engine-error.js'
import { Bisection } from '../../../../src/load/shards/bisection.js'

const error = engineError('COPY_SIGNATURE')

/** Runs `count` rows of which `bad` fail; `name` says which row the server speaks of. */
function run(
  count: number,
  bad: ReadonlySet<number>,
  name: (firstBad: number, from: number) => number | undefined,
  isSure: boolean,
) {
  const pieces = new Bisection(count, 1 << 20)
  const loaded: number[] = []
  let sent = 0
  for (let piece = pieces.next(); piece !== undefined; piece = pieces.next()) {
    const rows = Array.from({ length: piece.to - piece.from }, (_, at) => (piece?.from ?? 0) + at)
    sent += rows.length
    const first = rows.find((row) => bad.has(row))
    if (first === undefined) {
      loaded.push(...rows)
      pieces.succeeded()
    } else pieces.failed(error, name(first, piece.from), isSure)
  }
  return { loaded, bad: pieces.bad.map(({ row }) => row), sent }
}

const inputs = fc
  .integer({ min: 0, max: 3000 })
  .chain((count) =>
    fc.tuple(
      fc.constant(count),
      fc.uniqueArray(fc.nat(Math.max(0, count - 1)), { maxLength: Math.min(count, 40) }),
    ),
  )

describe('bisection', () => {
  it.each([
    ['the row at fault is named', (first: number) => first, true],
    ['it is named, but not surely', (first: number) => first, false],
    ['none is named', () => undefined, false],
    ['another is named', (_: number, from: number) => from, false],
    ['a row outside is named', () => 1e9, true],
  ] as const)('finds the rows at fault when %s', (_, name, isSure) => {
    fc.assert(
      fc.property(inputs, ([count, rows]) => {
        const bad = new Set(count === 0 ? [] : rows)
        const found = run(count, bad, name, isSure)
        expect(found.bad).toEqual([...bad].sort((a, b) => a - b))
        const good = Array.from({ length: count }, (_, row) => row).filter((row) => !bad.has(row))
        expect(found.loaded).toEqual(good)
      }),
      { numRuns: 60 },
    )
  })

  it('sends a row three times at most when one of a thousand is at fault', () => {
    const count = 100_000
    const bad = new Set(Array.from({ length: 100 }, (_, n) => n * 1000 + ((n * 37) % 1000)))
    // A server stops reading at the row at fault, so that what lies behind it costs nothing but the way.
    const { sent } = run(count, bad, (first) => first, true)
    expect(sent).toBeLessThan(3.5 * count)
  })
})
