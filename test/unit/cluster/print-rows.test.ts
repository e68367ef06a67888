import { expect, test } from 'vitest'
import { printRows, widthOf } from '../../../src/cluster/print-rows.js'

test('prints as psql does', () => {
  const columns = [
    { name: 'id', isNumeric: true },
    { name: 'name', isNumeric: false },
  ]
  const rows = [
    ['1', 'two\nlines'],
    ['-20', null],
    ['3', '日本'],
  ]
  expect(printRows(columns, rows)).toBe(
    [
      ' id  | name',
      '-----+-------',
      '   1 | two  +',
      '     | lines',
      ' -20 |',
      '   3 | 日本',
      '(3 rows)',
      '',
    ].join('\n'),
  )
})

test('no rows, one row', () => {
  const columns = [{ name: 'a', isNumeric: true }]
  expect(printRows(columns, [])).toBe(' a\n---\n(0 rows)\n')
  expect(printRows(columns, [['7']])).toBe(' a\n---\n 7\n(1 row)\n')
})

test('control characters do not reach the terminal', () => {
  expect(printRows([{ name: 'a', isNumeric: false }], [['\u001b[2J\u0007']])).toContain(
    '\\x1b[2J\\x07',
  )
})

test('widths', () => {
  expect(widthOf('abc')).toBe(3)
  expect(widthOf('日本')).toBe(4)
  expect(widthOf('e\u0301')).toBe(1)
})
