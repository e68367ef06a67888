import { expect, test } from 'vitest'
import { checkNodes, parseThreshold } from '../../../src/bench/report/threshold.js'

test.each([
  ['p99<5ms', 5],
  ['p99 <= .5 s', 500],
  ['max>20us', 0.02],
  ['gap_ms<3', 3],
  ['tps>=1e3', 1000],
  ['failed_pct<0.5%', 0.5],
  ['errors==0', 0],
  ['node(a:1).p95<2S', 2000],
])('%s has the limit %d', (text, limit) => {
  expect(parseThreshold(text).limit).toBeCloseTo(limit, 9)
})

test.each([
  ['tps>1s', '"tps" is not measured in s'],
  ['errors<5%', '"errors" is not measured in %'],
  ['p99<5%', '"p99" is not measured in %'],
  ['failed_pct<1ms', '"failed_pct" is not measured in ms'],
  ['p99<1.2.3ms', 'invalid threshold'],
  ['p99<.', 'invalid threshold'],
  ['node(a:1).p90<5', 'unknown metric "p90"'],
])('%s is refused', (text, message) => {
  expect(() => parseThreshold(text)).toThrow(message)
})

test('a node that is not in the list is refused before the run', () => {
  const thresholds = [parseThreshold('p99<1'), parseThreshold('node(b:1).p99<1')]
  expect(() => checkNodes(thresholds, ['a:1', 'b:1'])).not.toThrow()
  expect(() => checkNodes(thresholds, ['a:1'])).toThrow(
    'threshold "node(b:1).p99<1" names a node that is not in the list (a:1)',
  )
})
