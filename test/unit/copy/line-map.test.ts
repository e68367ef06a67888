import { describe, expect, it } from 'vitest'
import {
  contextLine,
  firstFault,
  LineMap,
  ownFault,
  withContextLine,
} from '../../../src/copy/line-map.js'

describe('line map', () => {
  it('knows the line of the data for each line of a shard', () => {
    const map = new LineMap()
    map.take(1, 1) // header
    map.take(4, 2)
    map.take(9, 1)
    map.take(2_000_000_000, 1)
    expect([1, 2, 3, 4, 5, 6].map((line) => map.lineOf(line))).toEqual([
      1,
      3,
      4,
      9,
      2_000_000_000,
      undefined,
    ])
    expect(new LineMap().lineOf(1)).toBeUndefined()
  })

  it('forgets what lies far behind, and remembers the rest', () => {
    const map = new LineMap(64 * 1024)
    const rows = 200_000
    for (let row = 1; row <= rows; row++) map.take(row * 5, 1)
    expect(map.lineOf(1)).toBeUndefined()
    for (const row of [rows, rows - 1, rows - 20_000]) expect(map.lineOf(row)).toBe(row * 5)
  })

  it('holds what rows of several lines need', () => {
    const map = new LineMap()
    let shardLine = 0
    const ends: [shard: number, line: number][] = []
    for (let row = 0; row < 50_000; row++) {
      const lines = 1 + (row % 400)
      shardLine += lines
      map.take(shardLine * 3, lines)
      ends.push([shardLine, shardLine * 3])
    }
    for (const [shard, line] of ends.filter((_, row) => row % 97 === 0))
      expect(map.lineOf(shard)).toBe(line)
  })
})

describe('contexts', () => {
  it('are read and written in several languages', () => {
    const where = 'PL/pgSQL function f() line 3 at RAISE\nCOPY t, line 7, column a: "x, line 8"'
    expect(contextLine(where)).toBe(7)
    expect(withContextLine(where, 70)).toBe(where.replace('line 7', 'line 70'))
    expect(contextLine('COPY t, Zeile 12')).toBe(12)
    expect(contextLine('SQL statement "select 1"')).toBeUndefined()
    expect(contextLine(undefined)).toBeUndefined()
  })
})

describe('the first fault', () => {
  const fault = (error: string, line?: number) => ({ error, line })

  it('stands first in the data, the first given among equals, and those without a line last', () => {
    const faults = [fault('late'), fault('b', 5), fault('a', 3), fault('c', 3)]
    expect(firstFault(faults)?.error).toBe('a')
    expect(firstFault([fault('late'), fault('later')])?.error).toBe('late')
    expect(firstFault([])).toBeUndefined()
  })

  it('is ours when it has no line: the beginning of the data is wrong', () => {
    expect(ownFault({ where: undefined }).line).toBe(0)
    expect(ownFault({ where: 'COPY t, line 3' }).line).toBe(3)
  })
})
