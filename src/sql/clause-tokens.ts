/**
 * Where the clauses of a SELECT stand, in tokens: offsets differ between texts of one template, and comments come and go,
 * but the tokens are the same. So a text is rewritten by the client's own characters, never from the tree.
 */
import { TokenKind, tokens } from './lexer.js'
import type { Span } from './select.js'

export interface ClauseTokens {
  /** With their aliases. */
  readonly targets: readonly Span[]
  /** Token behind the last of them. */
  readonly targetsEnd: number
  readonly distinctOn: readonly Span[]
  readonly group: readonly Span[]
  /** With ASC, USING, NULLS and their kin. */
  readonly sort: readonly Span[]
  /** ORDER BY with all its keys. */
  readonly sortSpan?: Span
  /** From the first of LIMIT, OFFSET and FETCH to the end of the last. */
  readonly limits?: Span
  /** Before this token a clause ORDER BY may be put, or its last key be followed by others. */
  readonly sortEnd: number
  readonly count: number
}

/** The tokens of a statement, comments left out, as copies that the next scan does not overwrite. */
export interface StatementTokens {
  readonly kinds: readonly number[]
  readonly starts: readonly number[]
  readonly ends: readonly number[]
}

/** Tokens of the last scan within [start, end) of its text. */
export function tokensWithin(start: number, end: number): StatementTokens {
  const kinds: number[] = []
  const starts: number[] = []
  const ends: number[] = []
  for (let i = 0; i < tokens.count; i++) {
    if (tokens.starts[i]! < start || tokens.kinds[i] === TokenKind.comment) continue
    if (tokens.ends[i]! > end) break
    kinds.push(tokens.kinds[i]!)
    starts.push(tokens.starts[i]!)
    ends.push(tokens.ends[i]!)
  }
  return { kinds, starts, ends }
}

/** Reads one statement's words and brackets. */
class TokenReader {
  readonly count: number
  readonly #sql: string
  readonly #tokens: StatementTokens
  /** Brackets open before each token. */
  readonly depths: number[] = []

  constructor(sql: string, list: StatementTokens) {
    this.#sql = sql
    this.#tokens = list
    this.count = list.kinds.length
    let depth = 0
    for (let i = 0; i < this.count; i++) {
      const symbol = this.symbol(i)
      if (symbol === ')' || symbol === ']') depth--
      this.depths.push(depth)
      if (symbol === '(' || symbol === '[') depth++
    }
  }

  symbol(at: number): string {
    if (this.#tokens.kinds[at] !== TokenKind.symbol) return ''
    return this.#sql.slice(this.#tokens.starts[at], this.#tokens.ends[at])
  }

  word(at: number): string {
    if (this.#tokens.kinds[at] !== TokenKind.word) return ''
    return this.#sql.slice(this.#tokens.starts[at], this.#tokens.ends[at]).toLowerCase()
  }

  /** The span without its brackets, cut at its top-level commas. */
  items(span: Span): Span[] {
    const items: Span[] = []
    const depth = this.depths[span.first] ?? 0
    let first = span.first
    for (let i = span.first; i < span.last; i++) {
      if (this.depths[i] !== depth || this.symbol(i) !== ',') continue
      items.push({ first, last: i })
      first = i + 1
    }
    if (first < span.last) items.push({ first, last: span.last })
    return items
  }

  /** The token that closes the bracket at `open`. */
  closing(open: number): number {
    const depth = this.depths[open]!
    let at = open + 1
    while (at < this.count && this.depths[at]! > depth) at++
    return at
  }
}

const clauseWords = new Set(
  'from where group having window order limit offset fetch for into union intersect except'.split(
    ' ',
  ),
)

/** A reserved word that begins a clause here, and is no label, name of a field, or part of an operator. */
function beginsClause(reader: TokenReader, at: number): boolean {
  if (reader.depths[at] !== 0 || !clauseWords.has(reader.word(at))) return false
  const before = reader.word(at - 1)
  if (before === 'as' || reader.symbol(at - 1) === '.') return false
  if (reader.word(at) === 'from' && before === 'distinct') {
    return !['is', 'not'].includes(reader.word(at - 2))
  }
  return !(reader.word(at) === 'group' && before === 'within')
}

interface Marks {
  readonly word: string
  readonly at: number
}

/** Keys of DISTINCT ON, and the token at which the output columns begin. */
function distinctOf(reader: TokenReader, at: number): { on: Span[]; next: number } {
  if (reader.word(at) === 'all') return { on: [], next: at + 1 }
  if (reader.word(at) !== 'distinct') return { on: [], next: at }
  if (reader.word(at + 1) !== 'on') return { on: [], next: at + 1 }
  const close = reader.closing(at + 2)
  const on = reader.items({ first: at + 3, last: close })
  return { on, next: close + 1 }
}

/** The first SELECT outside of brackets: that behind WITH when there is one; -1 when the statement begins in brackets. */
function selectAt(reader: TokenReader): number {
  for (let i = 0; i < reader.count; i++) {
    if (reader.depths[i] === 0 && reader.word(i) === 'select') return i
  }
  return -1
}

/** Undefined when the clauses cannot be told apart by their words. */
export function clauseTokens(sql: string, list: StatementTokens): ClauseTokens | undefined {
  const reader = new TokenReader(sql, list)
  const select = selectAt(reader)
  if (select < 0) return undefined
  const distinct = distinctOf(reader, select + 1)
  const marks: Marks[] = []
  for (let i = distinct.next; i < reader.count; i++) {
    if (beginsClause(reader, i)) marks.push({ word: reader.word(i), at: i })
  }
  const mark = (...words: string[]): Marks | undefined =>
    marks.find(({ word }) => words.includes(word))
  const endOf = (found: Marks): number => marks.find(({ at }) => at > found.at)?.at ?? reader.count
  if (mark('union', 'intersect', 'except', 'into')) return undefined
  const by = (found: Marks | undefined): Span[] => {
    if (!found || reader.word(found.at + 1) !== 'by') return []
    return reader.items({ first: found.at + 2, last: endOf(found) })
  }
  const order = mark('order')
  const limit = mark('limit', 'offset', 'fetch')
  const limitsEnd = mark('for')?.at ?? reader.count
  const targetsEnd = marks[0]?.at ?? reader.count
  return {
    targets: reader.items({ first: distinct.next, last: targetsEnd }),
    targetsEnd,
    distinctOn: distinct.on,
    group: by(mark('group')),
    sort: by(order),
    ...(order ? { sortSpan: { first: order.at, last: endOf(order) } } : {}),
    ...(limit ? { limits: { first: limit.at, last: limitsEnd } } : {}),
    sortEnd: limit?.at ?? limitsEnd,
    count: reader.count,
  }
}
