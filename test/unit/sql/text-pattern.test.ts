/** The byte patterns of texts against the lexer, which alone knows: what a pattern takes for its own has the same template. */
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { makeTemplate, splitStatements, type Template } from '../../../src/sql/template.js'
import { TextPattern } from '../../../src/sql/text-pattern.js'

function templateOf(sql: string): Template | undefined {
  const pieces = splitStatements(sql, true)
  if (pieces?.length !== 1) return undefined
  const [{ start, end, firstToken, lastToken }] = pieces as [(typeof pieces)[0]]
  return makeTemplate(sql, start, end, firstToken, lastToken)
}

function patternOf(sql: string): TextPattern | undefined {
  const template = templateOf(sql)
  return template && TextPattern.of(sql, template)
}

const matches = (first: string, second: string): boolean | undefined => {
  const bytes = Buffer.from(`Q____${second}\0`)
  return patternOf(first)?.matches(bytes, 5, bytes.length - 1)
}

describe('patterns of texts', () => {
  it.each([
    ['select v from t where id = 1', 'select v from t where id = 123456789'],
    ['select v from t where id = 1;', 'select v from t where id = 0;'],
    ["select v from t where id=1 and k='a'", "select v from t where id=77 and k=''"],
    ["select 'a'", "select 'ü; -- '"],
    ['select v from t', 'select v from t'],
  ])('%s takes %s', (first, second) => {
    expect(matches(first, second)).toBe(true)
  })

  it.each([
    // another class of literals
    ['select 1', 'select 2147483648'],
    ['select 1', 'select 1.5'],
    ['select 1', "select '1'"],
    ["select 'a'", 'select 1'],
    ['select 1', 'select -1'],
    // another statement
    ['select v from t where id = 1', 'select w from t where id = 1'],
    ['select 1', 'select 1; select 2'],
    ['select 1', 'select 1 '],
    ['select 1 ', 'select 1'],
    ['select v from t', 'select v from'],
    // strings that do not end where they seem to
    ["select 'a' from t", "select 'a'' from t"],
    ["select 'a'", "select 'a\\'"],
    ["select 'a', 'b'", "select 'a'', 'b'"],
    // a literal left out
    ['select 1', 'select '],
  ])('%s does not take %s', (first, second) => {
    expect(matches(first, second)).toBe(false)
  })

  it('has none for literals that other bytes may go on with', () => {
    for (const sql of ["select e'a'", 'select 1.5', "select b'1'", 'select $$a$$', 'select 0x1f'])
      expect(patternOf(sql), sql).toBeUndefined()
  })

  it('never takes a text of another template', () => {
    const piece = fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom('1', '22', '0', '2147483647', '999999999') },
      { weight: 3, arbitrary: fc.constantFrom("'a'", "'it''s'", "''", "'\\'", "e'x'", "'--'") },
      fc.constantFrom('1.5', '1e5', '0x1', '$1', '$$q$$', '"c"', '/* 1 */', '-- x\n', "b'1'"),
      fc.constantFrom('a', ',', ';', '(', ')', '=', '-', '+', '::int', '.', '_', 'e', "'", '\n'),
    )
    const text = fc
      .array(fc.tuple(piece, fc.constantFrom('', ' ')), { minLength: 1, maxLength: 6 })
      .map((parts) => `select ${parts.map(([one, blank]) => one + blank).join('')}`)
    let taken = 0
    const digits = fc.constantFrom('1', '0', '77', '2147483647')
    fc.assert(
      fc.property(text, text, digits, (first, other, number) => {
        for (const second of [
          other,
          first.replace(/\d+/, number),
          first.replace(/'[^']*'/, "'z'"),
        ]) {
          if (matches(first, second) !== true) continue
          taken++
          expect(templateOf(second)?.key, second).toBe(templateOf(first)?.key)
        }
      }),
      { seed: 61, numRuns: 20_000 },
    )
    expect(taken).toBeGreaterThan(2000)
  })
})
