/** Tables, bytes and durations as people read them. */
import { describe, expect, test } from 'vitest'
import {
  formatBytes,
  formatCount,
  formatDuration,
  formatRate,
  painter,
  renderTable,
} from '../../../src/cli/render.js'

describe('renderTable', () => {
  test('numbers stand to the right, words to the left, nothing trails', () => {
    const rows = [
      ['a', 1234567, '1.5 MB', undefined],
      ['longer', 8, '20 kB', 'note'],
    ]
    expect(renderTable(['name', 'rows', 'size', 'remark'], rows)).toBe(
      [
        'name         rows    size  remark',
        '------  ---------  ------  ------',
        'a       1,234,567  1.5 MB',
        'longer          8   20 kB  note',
        '',
      ].join('\n'),
    )
  })

  test('without rows only the header', () => {
    expect(renderTable(['a', 'bb'], [])).toBe('a  bb\n-  --\n')
  })
})

test.each<[number, string]>([
  [0, '0 B'],
  [999, '999 B'],
  [1000, '1.00 kB'],
  [12_345, '12.3 kB'],
  [999_949, '1.00 MB'],
  [123_456_789, '123 MB'],
  [5e15, '5.00 PB'],
])('%d bytes', (bytes, text) => {
  expect(formatBytes(bytes)).toBe(text)
})

test.each<[number, string]>([
  [0.42, '0.4 ms'],
  [12.4, '12 ms'],
  [999.4, '999 ms'],
  [1500, '1.5 s'],
  [59_960, '1 min 0 s'],
  [125_000, '2 min 5 s'],
  [3_600_000, '1 h 0 min'],
  [3_780_000, '1 h 3 min'],
])('%d ms', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})

test('counts, rates and colours', () => {
  expect(formatCount(1234567.8912)).toBe('1,234,567.891')
  expect(formatCount(12345678901234567890n)).toBe('12,345,678,901,234,567,890')
  expect(formatRate(1234.5, 'rows')).toBe('1,235 rows/s')
  expect(formatRate(2_500_000, 'bytes')).toBe('2.50 MB/s')
  expect(painter(false)('red', 'x')).toBe('x')
  expect(painter(true)('red', 'x')).toBe('\u001b[31mx\u001b[39m')
})
