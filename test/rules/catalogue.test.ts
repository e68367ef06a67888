/** The error catalogue: real SQLSTATEs, messages in style, every code used, docs/errors.md up to date. */
import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { errorsPage } from '../../scripts/write-reference.mjs'
import { type CatalogueEntry, catalogue } from '../../src/errors/catalogue.js'
import { filesUnder, readSources } from './source-files.js'

const entries = Object.entries(catalogue) as [string, CatalogueEntry][]
const sqlstates = new Set(
  readFileSync('fixtures/errors/sqlstates-15.txt', 'utf8')
    .split('\n')
    .filter((line) => /^[0-9A-Z]{5} /.test(line))
    .map((line) => line.slice(0, 5)),
)

describe('catalogue', () => {
  test('the list of SQLSTATEs is there', () => {
    expect(sqlstates.size).toBeGreaterThan(250)
  })

  test('every SQLSTATE is one of PostgreSQL', () => {
    const invented = entries.filter(([, entry]) => !sqlstates.has(entry.sqlstate))
    expect(invented.map(([code]) => code)).toEqual([])
  })

  test('messages are lower case, without full stop, in one line', () => {
    const wrong = entries.filter(
      ([, { message }]) => /^(?!PostgreSQL)[A-Z][a-z]/.test(message) || /[.\n]$|\n/.test(message),
    )
    expect(wrong.map(([code]) => code)).toEqual([])
  })

  test('codes are words in capitals; exit codes are those of docs/exit-codes.md', () => {
    const exits = [undefined, 1, 2, 3, 4, 5, 6, 7, 130]
    const wrong = entries.filter(
      ([code, { exit }]) => !/^[A-Z][A-Z0-9]*(_[A-Z0-9]+)*$/.test(code) || !exits.includes(exit),
    )
    expect(wrong.map(([code]) => code)).toEqual([])
  })

  test('no two files of the catalogue have one code', () => {
    const files = filesUnder('src/errors/catalogue', /\.ts$/)
    const codes = files.flatMap((file) =>
      [...readFileSync(file, 'utf8').matchAll(/^ {2}([A-Z][A-Z0-9_]+): \{/gm)].map(
        (match) => match[1],
      ),
    )
    const twice = codes.filter((code, i) => codes.indexOf(code) !== i)
    expect(twice).toEqual([])
  })

  test('every code is used', () => {
    const text = readSources(['src', 'commands'], /^src\/errors\/catalogue/)
    const unused = entries.filter(([code]) => !new RegExp(`['"\`]${code}['"\`]`).test(text))
    expect(unused.map(([code]) => code)).toEqual([])
  })

  test('docs/errors.md is what the catalogue says (npm run docs)', () => {
    expect(readFileSync('docs/errors.md', 'utf8')).toBe(errorsPage({ catalogue }))
  })
})
