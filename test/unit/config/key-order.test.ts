/** Literals of mappings: what is one of its type, which are the same, which comes first. */
import { describe, expect, test } from 'vitest'
import { comparableKey, compareKeys } from '../../../src/config/key-order.js'
import { nearest } from '../../../src/config/suggest.js'
import type { KeyType } from '../../../src/datum/key-type.js'

const compare = (type: KeyType, a: string, b: string): number => {
  const [left, right] = [comparableKey(type, a), comparableKey(type, b)]
  if (left === undefined || right === undefined) throw new Error('not a literal')
  return Math.sign(compareKeys(left, right))
}

describe('comparableKey', () => {
  test.each<[KeyType, string, string, number]>([
    ['bigint', '9', '10', -1],
    ['bigint', '+5', ' 5 ', 0],
    ['bigint', '-9223372036854775808', '9223372036854775807', -1],
    ['numeric', '1.50', '1.5', 0],
    ['numeric', '1e3', '999.999', 1],
    ['numeric', '-0.1', '0', -1],
    ['numeric', '.5', '5e-1', 0],
    ['uuid', '{A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11}', 'a0eebc999c0b4ef8bb6d6bb9bd380a11', 0],
    ['text', 'Z', 'a', -1],
    ['text', 'é', 'z', 1],
    ['bpchar', 'a  ', 'a', 0],
    ['text', 'a ', 'a', 1],
    ['date', '2024-01-31', '2024-02-01', -1],
    ['timestamp', '2024-01-31 12:00', '2024-01-31T12:00:00', 0],
    ['timestamp', '2024-01-31 12:00:00.000001', '2024-01-31 12:00:00', 1],
    ['timestamptz', '2024-01-31 12:00:00+01', '2024-01-31 11:00:00Z', 0],
    ['timestamptz', '2024-01-31 12:00:00+0530', '2024-01-31 12:00:00+05', -1],
  ])('%s %s ~ %s is %d', (type, a, b, sign) => {
    expect(compare(type, a, b)).toBe(sign)
    expect(compare(type, b, a) + sign).toBe(0)
  })

  test.each<[KeyType, string]>([
    ['bigint', '9223372036854775808'],
    ['integer', '2147483648'],
    ['smallint', '-32769'],
    ['bigint', '1.0'],
    ['bigint', ''],
    ['numeric', '.'],
    ['numeric', 'NaN'],
    ['uuid', 'a0eebc99'],
    ['date', '31.01.2024'],
    ['date', '2024-02-31x'],
    ['timestamptz', '2024-01-31 12:00:00'],
  ])('%s does not take "%s"', (type, text) => {
    expect(comparableKey(type, text)).toBeUndefined()
  })
})

describe('nearest', () => {
  const names = ['port', 'host', 'default_pool_size', 'min_pool_size', 'verify_full']
  test.each<[string, string | undefined]>([
    ['prot', 'port'],
    ['defualt_pool_size', 'default_pool_size'],
    ['verify-full', 'verify_full'],
    ['VERIFY_FULL', 'verify_full'],
    ['pool', undefined],
    ['x', undefined],
  ])('%s', (word, expected) => {
    expect(nearest(word, names)).toBe(expected)
  })
})
