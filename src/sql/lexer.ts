/**
 * Token boundaries as PostgreSQL's scanner draws them (src/backend/parser/scan.l of PostgreSQL 18).
 * `scanTokens` fills arrays that every call overwrites: read them before the next one. It never decides what a token means.
 */

export const TokenKind = {
  word: 1,
  quotedName: 2,
  string: 3,
  bitString: 4,
  integer: 5,
  float: 6,
  parameter: 7,
  symbol: 8,
  comment: 9,
} as const

/** The tokens of the last scan; borrowed until the next one. `ends` are exclusive. */
export interface TokenList {
  count: number
  kinds: Uint8Array
  starts: Int32Array
  ends: Int32Array
  /** Character offset of a lexical error, or -1. */
  error: number
}

export const tokens: TokenList = {
  count: 0,
  kinds: new Uint8Array(1024),
  starts: new Int32Array(1024),
  ends: new Int32Array(1024),
  error: -1,
}

const space = 1
const nameStart = 2
const digit = 3
const quote = 4
const operator = 5
const self = 6

const classes = new Uint8Array(256)
const dollar = 36
for (let i = 0; i < 256; i++) {
  const ch = String.fromCharCode(i)
  if (/[a-z_]/i.test(ch) || i >= 128) classes[i] = nameStart
  else if (/[0-9]/.test(ch)) classes[i] = digit
  else if (' \t\n\r\f\v'.includes(ch)) classes[i] = space
  else if ('~!@#^&|`?+-*/%<>='.includes(ch)) classes[i] = operator
  else if (',()[].;:'.includes(ch)) classes[i] = self
  else if (ch === "'" || ch === '"') classes[i] = quote
}
const classOf = (code: number): number => (code < 256 ? classes[code]! : nameStart)
const isNamePart = (code: number): boolean => {
  const kind = classOf(code)
  return kind === nameStart || kind === digit || code === dollar
}

function push(kind: number, start: number, end: number): void {
  const at = tokens.count
  if (at === tokens.kinds.length) grow()
  tokens.kinds[at] = kind
  tokens.starts[at] = start
  tokens.ends[at] = end
  tokens.count = at + 1
}

function grow(): void {
  const size = tokens.kinds.length * 2
  const kinds = new Uint8Array(size)
  const starts = new Int32Array(size)
  const ends = new Int32Array(size)
  kinds.set(tokens.kinds)
  starts.set(tokens.starts)
  ends.set(tokens.ends)
  tokens.kinds = kinds
  tokens.starts = starts
  tokens.ends = ends
}

const lineEnd = (sql: string, from: number): number => {
  let at = from
  while (at < sql.length) {
    const code = sql.charCodeAt(at)
    if (code === 10 || code === 13) break
    at++
  }
  return at
}

/** End of a block comment that starts at `from`, or -1; they nest. */
function blockCommentEnd(sql: string, from: number): number {
  let depth = 1
  let at = from + 2
  while (at < sql.length) {
    const code = sql.charCodeAt(at)
    const next = sql.charCodeAt(at + 1)
    if (code === 47 && next === 42) {
      depth++
      at += 2
    } else if (code === 42 && next === 47) {
      at += 2
      if (--depth === 0) return at
    } else at++
  }
  return -1
}

/** Where the string goes on after a closing quote and a newline, or -1. Comments of one line count as space. */
function continuation(sql: string, from: number): number {
  let newline = false
  for (let at = from; at < sql.length; at++) {
    const code = sql.charCodeAt(at)
    if (code === 39) return newline ? at : -1
    if (code === 10 || code === 13) newline = true
    else if (code === 45 && sql.charCodeAt(at + 1) === 45) at = lineEnd(sql, at) - 1
    else if (classOf(code) !== space) return -1
  }
  return -1
}

/** End of the quoted piece whose first quote is at `from`, or -1. */
function quotedEnd(sql: string, from: number, mark: number, backslashes: boolean): number {
  for (let at = from + 1; at < sql.length; at++) {
    const code = sql.charCodeAt(at)
    if (code === mark) {
      if (sql.charCodeAt(at + 1) !== mark) return at + 1
      at++
    } else if (backslashes && code === 92) at++
  }
  return -1
}

/** End of a string with its continuations. */
function stringEnd(sql: string, from: number, backslashes: boolean): number {
  let end = quotedEnd(sql, from, 39, backslashes)
  while (end >= 0) {
    const next = continuation(sql, end)
    if (next < 0) return end
    end = quotedEnd(sql, next, 39, backslashes)
  }
  return -1
}

/** End of a dollar-quoted string, 0 when none starts here, or -1 when it does not end. */
function dollarEnd(sql: string, from: number): number {
  let at = from + 1
  if (classOf(sql.charCodeAt(at)) === nameStart) {
    while (at < sql.length && isNamePart(sql.charCodeAt(at)) && sql.charCodeAt(at) !== dollar) at++
  }
  if (sql.charCodeAt(at) !== dollar) return 0
  const mark = sql.slice(from, at + 1)
  const found = sql.indexOf(mark, at + 1)
  return found < 0 ? -1 : found + mark.length
}

const digitsEnd = (sql: string, from: number): number => {
  let at = from
  for (;;) {
    const code = sql.charCodeAt(at)
    if (code >= 48 && code <= 57) at++
    else if (code === 95 && classOf(sql.charCodeAt(at + 1)) === digit && at > from) at++
    else return at
  }
}

const based = /0[xX](?:_?[0-9A-Fa-f])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+/y

/** Pushes the number at `from`; its end, or -1 when junk is glued to it. */
function scanNumber(sql: string, from: number): number {
  if (sql.charCodeAt(from) === 48) {
    based.lastIndex = from
    if (based.test(sql)) return pushNumber(sql, TokenKind.integer, from, based.lastIndex)
  }
  let end = digitsEnd(sql, from)
  let kind: number = TokenKind.integer
  if (hasFraction(sql, from, end)) {
    kind = TokenKind.float
    end = digitsEnd(sql, end + 1)
  }
  const last = exponentEnd(sql, end)
  return pushNumber(sql, last > end ? TokenKind.float : kind, from, last)
}

/** A point at `end`, which is not the first of two (1..10). */
const hasFraction = (sql: string, from: number, end: number): boolean =>
  sql.charCodeAt(end) === 46 && !(end > from && sql.charCodeAt(end + 1) === 46)

/** End of e+5 at `from`; `from` itself when there is none. */
function exponentEnd(sql: string, from: number): number {
  if ((sql.charCodeAt(from) | 32) !== 101) return from
  const sign = sql.charCodeAt(from + 1)
  const first = sign === 43 || sign === 45 ? from + 2 : from + 1
  const last = digitsEnd(sql, first)
  return last > first ? last : from
}

function pushNumber(sql: string, kind: number, from: number, end: number): number {
  if (end < sql.length && classOf(sql.charCodeAt(end)) === nameStart) return -1
  push(kind, from, end)
  return end
}

/** Of an operator only a character of this set lets a trailing + or - stay. */
const keepsSign = (code: number): boolean => '~!@#^&|`?%'.includes(String.fromCharCode(code))

function operatorEnd(sql: string, from: number): number {
  let end = from
  let special = false
  while (end < sql.length) {
    const code = sql.charCodeAt(end)
    if (classOf(code) !== operator) break
    const next = sql.charCodeAt(end + 1)
    if ((code === 47 && next === 42) || (code === 45 && next === 45)) break
    if (keepsSign(code)) special = true
    end++
  }
  if (!special) {
    while (end - from > 1 && (sql.charCodeAt(end - 1) === 43 || sql.charCodeAt(end - 1) === 45))
      end--
  }
  return end
}

const wordEnd = (sql: string, from: number): number => {
  let at = from + 1
  while (at < sql.length && isNamePart(sql.charCodeAt(at))) at++
  return at
}

/** A word, or a string or name with a letter before its quote. The end, or -1. */
function scanWord(sql: string, from: number): number {
  const letter = sql.charCodeAt(from) | 32
  const next = sql.charCodeAt(from + 1)
  if (next === 39) {
    const bits = letter === 98 || letter === 120
    if (bits) return pushed(TokenKind.bitString, from, stringEnd(sql, from + 1, false))
    if (letter === 101) return pushed(TokenKind.string, from, stringEnd(sql, from + 1, true))
  }
  if (letter === 117 && next === 38) {
    const mark = sql.charCodeAt(from + 2)
    if (mark === 39) return pushed(TokenKind.string, from, stringEnd(sql, from + 2, false))
    if (mark === 34) return pushed(TokenKind.quotedName, from, quotedEnd(sql, from + 2, 34, false))
  }
  return pushed(TokenKind.word, from, wordEnd(sql, from))
}

function pushed(kind: number, from: number, end: number): number {
  if (end >= 0) push(kind, from, end)
  return end
}

/** $1, a dollar-quoted string, or an error. */
function scanDollar(sql: string, from: number): number {
  if (classOf(sql.charCodeAt(from + 1)) === digit) {
    let end = from + 1
    while (classOf(sql.charCodeAt(end)) === digit) end++
    // The parser takes $1from apart; a server of 15 or newer rejects it itself.
    return pushed(TokenKind.parameter, from, end)
  }
  const end = dollarEnd(sql, from)
  if (end !== 0) return pushed(TokenKind.string, from, end)
  return -1
}

/** A comment, an operator, or a single character. */
function scanSymbol(sql: string, from: number, code: number): number {
  const next = sql.charCodeAt(from + 1)
  if (code === 45 && next === 45) return pushed(TokenKind.comment, from, lineEnd(sql, from))
  if (code === 47 && next === 42) return pushed(TokenKind.comment, from, blockCommentEnd(sql, from))
  if (classOf(code) === operator) return pushed(TokenKind.symbol, from, operatorEnd(sql, from))
  const double =
    (code === 58 && (next === 58 || next === 61)) || (code === 46 && next === 46 && from >= 0)
  return pushed(TokenKind.symbol, from, double ? from + 2 : from + 1)
}

function scanOne(sql: string, from: number, code: number, standard: boolean): number {
  switch (classOf(code)) {
    case nameStart:
      return scanWord(sql, from)
    case digit:
      return scanNumber(sql, from)
    case quote:
      return code === 39
        ? pushed(TokenKind.string, from, stringEnd(sql, from, !standard))
        : pushed(TokenKind.quotedName, from, quotedEnd(sql, from, 34, false))
    case operator:
      return scanSymbol(sql, from, code)
    case self:
      if (code === 46 && classOf(sql.charCodeAt(from + 1)) === digit) return scanNumber(sql, from)
      return scanSymbol(sql, from, code)
    default:
      return code === dollar ? scanDollar(sql, from) : -1
  }
}

/** Scans `sql` into `tokens`. `standard` is standard_conforming_strings. False after a lexical error. */
export function scanTokens(sql: string, standard = true): boolean {
  tokens.count = 0
  tokens.error = -1
  let at = 0
  while (at < sql.length) {
    const code = sql.charCodeAt(at)
    if (classOf(code) === space) {
      at++
      continue
    }
    const end = scanOne(sql, at, code, standard)
    if (end < 0) {
      tokens.error = at
      return false
    }
    at = end
  }
  return true
}
