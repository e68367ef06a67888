/**
 * A statement's text without its literals: the key under which its plan is kept. Each literal leaves its class behind
 * (integer within int4, larger or decimal number, string, bit string), because the class decides types and so the plan.
 * Everything else stays as written, comments too when they hint a route. NUL cannot stand in a statement, so it marks slots.
 */
import { scanTokens, TokenKind, tokens } from './lexer.js'

export type SlotClass = 'integer' | 'number' | 'string' | 'bit'

/** Where a literal stands in one text. */
export interface Slots {
  readonly starts: readonly number[]
  readonly ends: readonly number[]
}

export interface Template {
  readonly key: string
  readonly starts: number[]
  readonly ends: number[]
  readonly classes: SlotClass[]
}

const marks: Record<SlotClass, string> = {
  integer: '\0i',
  number: '\0f',
  string: '\0s',
  bit: '\0b',
}

function integerClass(sql: string, start: number, end: number): SlotClass {
  if (end - start < 10) return 'integer'
  return Number(sql.slice(start, end).replaceAll('_', '')) <= 0x7fffffff ? 'integer' : 'number'
}

/** Class of a token's literal, or undefined when it is none. */
function slotClass(sql: string, kind: number, start: number, end: number): SlotClass | undefined {
  switch (kind) {
    case TokenKind.integer:
      return integerClass(sql, start, end)
    case TokenKind.float:
      return 'number'
    case TokenKind.string:
      return 'string'
    case TokenKind.bitString:
      return 'bit'
    default:
      return undefined
  }
}

const hinting = /pgshard_|pgdog_/

/** The template of sql[from, to), from the tokens of the last scan numbered [first, last). Slots are offsets in `sql`. */
export function makeTemplate(
  sql: string,
  from: number,
  to: number,
  first: number,
  last: number,
): Template {
  const { kinds, starts, ends } = tokens
  const template: { key: string; starts: number[]; ends: number[]; classes: SlotClass[] } = {
    key: '',
    starts: [],
    ends: [],
    classes: [],
  }
  let key = ''
  let at = from
  for (let i = first; i < last; i++) {
    const kind = kinds[i]!
    if (kind === TokenKind.word || kind === TokenKind.symbol) continue
    const start = starts[i]!
    const end = ends[i]!
    if (kind === TokenKind.comment) {
      if (hinting.test(sql.slice(start, end))) continue
      key += `${sql.slice(at, start)} `
      at = end
      continue
    }
    const found = slotClass(sql, kind, start, end)
    if (found === undefined) continue
    key += sql.slice(at, start) + marks[found]
    at = end
    template.starts.push(start)
    template.ends.push(end)
    template.classes.push(found)
  }
  template.key = key + sql.slice(at, to)
  return template
}

/** One statement of a query string: its text and its tokens of the last scan. */
export interface Piece {
  readonly start: number
  readonly end: number
  readonly firstToken: number
  readonly lastToken: number
}

/**
 * Scans and cuts a query string at its top-level semicolons; pieces of blanks and comments only are dropped.
 * Undefined after a lexical error. A semicolon inside parentheses or BEGIN ATOMIC … END does not end a statement.
 */
export function splitStatements(sql: string, standard: boolean): Piece[] | undefined {
  if (!scanTokens(sql, standard)) return undefined
  const pieces: Piece[] = []
  let first = 0
  let depth = 0
  let atomic = 0
  for (let i = 0; i < tokens.count; i++) {
    const kind = tokens.kinds[i]!
    if (kind === TokenKind.word) {
      atomic = atomicDepth(sql, i, first, atomic)
      continue
    }
    if (kind !== TokenKind.symbol || tokens.ends[i]! - tokens.starts[i]! !== 1) continue
    const code = sql.charCodeAt(tokens.starts[i]!)
    if (code === 40) depth++
    else if (code === 41) depth--
    else if (code === 59 && depth <= 0 && atomic === 0) {
      addPiece(pieces, first, i)
      first = i + 1
      depth = 0
    }
  }
  addPiece(pieces, first, tokens.count)
  return pieces
}

/** Follows CREATE … BEGIN ATOMIC … END; only CASE nests in it. */
function atomicDepth(sql: string, at: number, first: number, depth: number): number {
  const length = tokens.ends[at]! - tokens.starts[at]!
  if (length < 3 || length > 6) return depth
  const word = sql.slice(tokens.starts[at]!, tokens.ends[at]!).toLowerCase()
  if (depth === 0) {
    if (word !== 'atomic' || at === first) return 0
    return /^create$/i.test(sql.slice(tokens.starts[first]!, tokens.ends[first]!)) ? 1 : 0
  }
  if (word === 'case') return depth + 1
  return word === 'end' ? depth - 1 : depth
}

function addPiece(pieces: Piece[], first: number, last: number): void {
  let from = first
  while (from < last && tokens.kinds[from] === TokenKind.comment) from++
  if (from === last) return
  // Comments before and behind belong to the statement: hints stand there.
  pieces.push({
    start: tokens.starts[first]!,
    end: tokens.ends[last - 1]!,
    firstToken: first,
    lastToken: last,
  })
}
