import { readdirSync, readFileSync } from 'node:fs'
import { scanSync } from 'libpg-query'
import { beforeAll, describe, expect, it } from 'vitest'
import { scanTokens, TokenKind, tokens } from '../../../src/sql/lexer.js'
import { stringValue } from '../../../src/sql/literal.js'
import { loadParser, parseStatements } from '../../../src/sql/parse.js'
import { splitStatements } from '../../../src/sql/template.js'

const corpus = [
  ...readFileSync('fixtures/sql/orm.jsonl', 'utf8')
    .trim()
    .split('\n')
    .map((line) => (JSON.parse(line) as { sql: string }).sql),
  ...readdirSync('fixtures/sql/routing').map(
    (file) =>
      (JSON.parse(readFileSync(`fixtures/sql/routing/${file}`, 'utf8')) as { sql: string }).sql,
  ),
  "select E'a\\'b', 'it''s', $$a;b$$, $q$ $$ $q$, U&'d\\0061t' , B'01', X'1f', N'x'",
  'select 1..2, 1.5, .5, 1., 1e10, 1.5e-3, 0xff, 1_000, $1, a$b, "q""x", U&"y"',
  'select a<-1, a- -1, a+-1, @-1, a#>>b, a->>-1, b::int, c[1:2], f(a=>1), x:=3',
  "select 'a' -- c\n, 'b' /* n /* e */ st */ ; select 'a'\n\t 'b', é, x'1'\n'2'",
]

/** Boundaries as PostgreSQL draws them, in characters; undefined when it rejects the text. */
function theirs(sql: string): string[] | undefined {
  let scanned: ReturnType<typeof scanSync>
  try {
    scanned = scanSync(sql)
  } catch {
    return undefined
  }
  if (!Array.isArray(scanned.tokens)) return undefined
  const bytes = Buffer.from(sql)
  return scanned.tokens.map(({ start, end }) => bytes.toString('utf8', start, end))
}

function ours(sql: string): string[] | undefined {
  if (!scanTokens(sql)) return undefined
  return Array.from({ length: tokens.count }, (_, i) => sql.slice(tokens.starts[i], tokens.ends[i]))
}

beforeAll(loadParser)

/** A small generator with a seed, so that a failure repeats. */
function random(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1103515245) + 12345) & 0x7fffffff
    return (state >>> 8) % below
  }
}

const pieces = [
  "'",
  '"',
  '$$',
  '--',
  '/*',
  '*/',
  '\n',
  ' ',
  '-',
  '+',
  '.',
  '1',
  'e',
  "E'",
  '\\',
  '$1',
  '::',
  '@',
  'x',
]

function mutate(sql: string, next: (below: number) => number): string {
  let text = sql
  for (let i = next(3); i >= 0; i--) {
    const at = next(text.length + 1)
    text = text.slice(0, at) + pieces[next(pieces.length)] + text.slice(at + next(3))
  }
  return text
}

/** Values of the strings in the last scan of `sql`; plain ASCII only, which JSON shows as it is. */
function stringValues(sql: string): string[] {
  const values: string[] = []
  for (let at = 0; at < tokens.count; at++) {
    if (tokens.kinds[at] !== TokenKind.string) continue
    const value = stringValue(sql, tokens.starts[at]!, tokens.ends[at]!)
    if (value !== undefined && /^[\x20-\x7e\n]*$/.test(value)) values.push(value)
  }
  return values
}

describe('lexer', () => {
  it("draws PostgreSQL's boundaries on the corpus", () => {
    for (const sql of corpus) expect(ours(sql), sql).toEqual(theirs(sql))
  })

  it('draws them on mutants, wherever the parser accepts the text', () => {
    const next = random(20261129)
    let compared = 0
    for (let i = 0; i < 4000; i++) {
      const sql = mutate(corpus[next(corpus.length)]!, next)
      const expected = theirs(sql)
      const parsed = parseStatements(sql)
      if (!expected || 'message' in parsed) continue
      compared++
      expect(ours(sql), JSON.stringify(sql)).toEqual(expected)
    }
    expect(compared).toBeGreaterThan(500)
  })

  it('cuts statements where PostgreSQL does', () => {
    const cut = (sql: string) =>
      splitStatements(sql, true)?.map((piece) => sql.slice(piece.start, piece.end))
    expect(cut("select ';' ; ; select 2 -- ;\n; /* ; */")).toEqual(["select ';'", 'select 2 -- ;'])
    expect(
      cut(
        'create function f() returns int begin atomic select case when true then 1 end; end; select 2',
      ),
    ).toHaveLength(2)
    expect(
      cut('create rule r as on insert to t do also (select 1; select 2); select 3'),
    ).toHaveLength(2)
    expect(cut("select 'open")).toBeUndefined()
  })

  it('reads the value of every string that the parser reads', () => {
    const next = random(7)
    let compared = 0
    for (let i = 0; i < 3000; i++) {
      const sql = mutate(corpus[next(corpus.length)]!, next)
      const parsed = parseStatements(sql)
      if ('message' in parsed || !scanTokens(sql)) continue
      const tree = JSON.stringify(parsed.statements)
      for (const value of stringValues(sql)) {
        compared++
        expect(tree, sql).toContain(JSON.stringify(value).slice(1, -1))
      }
    }
    expect(compared).toBeGreaterThan(50)
  })

  it('takes a backslash as an escape only when standard_conforming_strings is off', () => {
    const sql = "select 'a\\'b' from t"
    expect(scanTokens(sql, true)).toBe(false)
    expect(scanTokens(sql, false)).toBe(true)
    expect(stringValue(sql, tokens.starts[1]!, tokens.ends[1]!, false)).toBe("a'b")
  })
})
