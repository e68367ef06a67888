/**
 * A text with its literals left open, as bytes: says of other bytes that they are the same statement with other literals,
 * without reading them as SQL. What it does not know for sure it denies; then the lexer decides (template.ts). Pure.
 */
import type { Slots } from './template.js'

const INTEGER = 0
const STRING = 1

const QUOTE = 0x27
const BACKSLASH = 0x5c

/** Longer texts, and those with more literals, are not worth keeping for it. */
const MOST_CHARACTERS = 1024
const MOST_SLOTS = 8
/** An integer of more digits may belong to another class of literals. */
const MOST_DIGITS = 9

export class TextPattern {
  /** What stands before, between and behind the literals. */
  readonly #pieces: readonly Uint8Array[]
  readonly #kinds: readonly number[]

  private constructor(pieces: readonly Uint8Array[], kinds: readonly number[]) {
    this.#pieces = pieces
    this.#kinds = kinds
  }

  /** Of a text and all its literals; undefined when one of them is of no simple kind. */
  static of(sql: string, slots: Slots): TextPattern | undefined {
    if (sql.length > MOST_CHARACTERS || slots.starts.length > MOST_SLOTS) return undefined
    const pieces: Uint8Array[] = []
    const kinds: number[] = []
    let at = 0
    for (const [i, start] of slots.starts.entries()) {
      const end = slots.ends[i] as number
      const kind = kindOf(sql.slice(start, end))
      if (kind === undefined || !beginsThere(sql.charCodeAt(start - 1))) return undefined
      if (!endsThere(kind, sql.charCodeAt(end))) return undefined
      kinds.push(kind)
      pieces.push(new TextEncoder().encode(sql.slice(at, start)))
      at = end
    }
    pieces.push(new TextEncoder().encode(sql.slice(at)))
    return new TextPattern(pieces, kinds)
  }

  /** True when buffer[start, end) differs in its literals alone. Strings with a backslash or a doubled quote do not match. */
  matches(buffer: Buffer, start: number, end: number): boolean {
    const pieces = this.#pieces
    const kinds = this.#kinds
    let at = start
    for (let i = 0; i < pieces.length; i++) {
      const piece = pieces[i] as Uint8Array
      const next = at + piece.length
      if (next > end) return false
      for (let j = 0; at < next; j++, at++) if (buffer[at] !== piece[j]) return false
      if (i === kinds.length) break
      at = kinds[i] === INTEGER ? endOfInteger(buffer, at, end) : endOfString(buffer, at, end)
      if (at < 0) return false
    }
    return at === end
  }
}

function kindOf(literal: string): number | undefined {
  if (/^\d{1,9}$/.test(literal)) return INTEGER
  return literal.charCodeAt(0) === QUOTE ? STRING : undefined
}

/** Behind such a character a quote may open another kind of string, and a digit go on with a word. */
const beginsThere = (code: number): boolean =>
  Number.isNaN(code) || (code < 0x80 && !/[\w&$.]/.test(String.fromCharCode(code)))

/** Whether a literal of the kind ends before this character, whatever is in it; NaN at the end of the text. */
function endsThere(kind: number, code: number): boolean {
  if (Number.isNaN(code)) return true
  // a digit, a letter, `_`, `.`, `$` or a character outside ASCII could go on with a number, as in 0x1 and 1e5
  if (kind === INTEGER) return code < 0x80 && !/[\w.$]/.test(String.fromCharCode(code))
  return code !== QUOTE
}

/** -1: there is none, or one that may be too large. */
function endOfInteger(buffer: Buffer, from: number, end: number): number {
  let at = from
  while (at < end && isDigit(buffer[at] as number)) at++
  return at === from || at - from > MOST_DIGITS ? -1 : at
}

const isDigit = (byte: number): boolean => byte >= 0x30 && byte <= 0x39

function endOfString(buffer: Buffer, from: number, end: number): number {
  if (buffer[from] !== QUOTE) return -1
  for (let at = from + 1; at < end; at++) {
    const byte = buffer[at]
    if (byte === QUOTE) return buffer[at + 1] === QUOTE ? -1 : at + 1
    if (byte === BACKSLASH || byte === 0) return -1
  }
  return -1
}
