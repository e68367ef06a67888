import { expect, test } from 'vitest'
import { Digest, type Field } from '../../../src/demo/digest.js'

const of = (...rows: Field[][]): Digest => {
  const digest = new Digest()
  for (const row of rows) digest.add(row)
  return digest
}

test('the order of rows does not count, their number does', () => {
  expect(of(['a'], ['b']).equals(of(['b'], ['a']))).toBe(true)
  expect(of(['a'], ['a']).equals(of(['a']))).toBe(false)
})

test.each<[Field[], Field[]]>([
  [[null], ['']],
  [[null], ['NULL']],
  [
    ['a', 'b'],
    ['ab', ''],
  ],
  [
    ['a', 'b'],
    ['b', 'a'],
  ],
  [['\n'], ['\r\n']],
  [['é'], ['e\u0301']],
])('%j is not %j', (a, b) => {
  expect(of(a).equals(of(b))).toBe(false)
})

test('what is removed is as if it had never been there', () => {
  const digest = of(['a'], ['b'])
  digest.remove(['a'])
  expect(digest.equals(of(['b']))).toBe(true)
})
