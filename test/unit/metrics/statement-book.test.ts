import { expect, test } from 'vitest'
import { READ, REQUEST_CLASSES } from '../../../src/metrics/request-times.js'
import { noteSeen, REFUSED, StatementBook } from '../../../src/metrics/statement-book.js'
import { shapeOf } from '../../../src/routing/redact.js'

test('counts, times and shards are summed; ways are told once each', () => {
  const book = new StatementBook()
  const seen = book.of('SELECT ?')
  noteSeen(seen, READ, 1, 2, false)
  noteSeen(seen, REQUEST_CLASSES.indexOf('merge'), 4, 6, true)
  noteSeen(seen, REFUSED, 0, 1, true)
  expect(book.of('SELECT ?')).toBe(seen)
  expect(book.rows()).toEqual([
    {
      text: 'SELECT ?',
      ...{ count: 3, errors: 2, totalMs: 9, maxMs: 6, shards: 5 },
      hows: ['one shard', 'merge', 'refused'],
    },
  ])
})

test('is bounded: what took the least time leaves, and knows that it has', () => {
  const book = new StatementBook()
  const least = book.of('least')
  for (let i = 0; i < 499; i++) noteSeen(book.of(`SELECT ${'a'.repeat(i + 1)}`), READ, 1, 5, false)
  expect(book.rows()).toHaveLength(500)
  book.of('new')
  expect(book.rows()).toHaveLength(500)
  expect(least.isKept).toBe(false)
  expect(book.of('least')).not.toBe(least)
})

test('texts of any length are bounded', () => {
  const book = new StatementBook()
  expect(book.of(`SELECT ${'a'.repeat(5000)}`)).toBe(book.of(`SELECT ${'a'.repeat(6000)}`))
  expect(book.rows()[0]?.text.length).toBeLessThan(2100)
})

test('a shape has no literals, and lists of any length are one', () => {
  expect(shapeOf(`SELECT 'secret' FROM t WHERE a IN (1, 2,3) -- password`)).toBe(
    'SELECT ? FROM t WHERE a IN (?, …)',
  )
  expect(shapeOf('INSERT INTO t VALUES ($1,$2), ($3,$4),($5,$6)')).toBe(
    'INSERT INTO t VALUES ($1, …), …',
  )
  expect(shapeOf('INSERT INTO t VALUES (1)')).toBe('INSERT INTO t VALUES (?)')
})
