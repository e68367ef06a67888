/** Reading a statement's text by its words and brackets, comments left out. Offsets are those of the lexer. */
import { scanTokens, TokenKind, tokens } from '../../sql/lexer.js'

/** Tokens of one statement, comments left out, as seen by the functions below until the next scan. */
export class Words {
  readonly count: number
  readonly #sql: string
  readonly #at: number[] = []

  constructor(sql: string) {
    this.#sql = sql
    for (let i = 0; i < tokens.count; i++) {
      if (tokens.kinds[i] !== TokenKind.comment) this.#at.push(i)
    }
    this.count = this.#at.length
  }

  start(i: number): number {
    return i < this.count ? tokens.starts[this.#at[i]!]! : this.#sql.length
  }

  end(i: number): number {
    return i < this.count ? tokens.ends[this.#at[i]!]! : this.#sql.length
  }

  /** Lower-case text of a word; empty for all else. */
  word(i: number): string {
    if (i >= this.count || i < 0 || tokens.kinds[this.#at[i]!] !== TokenKind.word) return ''
    return this.#sql.slice(this.start(i), this.end(i)).toLowerCase()
  }

  /** The character of a symbol of one character; 0 for all else. */
  symbol(i: number): number {
    if (i >= this.count || i < 0) return 0
    const at = this.#at[i]!
    if (tokens.kinds[at] !== TokenKind.symbol || tokens.ends[at]! - tokens.starts[at]! !== 1)
      return 0
    return this.#sql.charCodeAt(tokens.starts[at]!)
  }
}

export const open = 40
export const close = 41
export const comma = 44
export const dot = 46
const openBracket = 91
const closeBracket = 93

export const opens = (symbol: number): boolean => symbol === open || symbol === openBracket
export const closes = (symbol: number): boolean => symbol === close || symbol === closeBracket

/** Calls `found` for each token outside of all brackets from `from` on, until it says stop. */
export function outside(words: Words, from: number, found: (i: number) => boolean): number {
  let depth = 0
  for (let i = from; i < words.count; i++) {
    const symbol = words.symbol(i)
    if (closes(symbol)) depth--
    if (depth === 0 && found(i)) return i
    if (opens(symbol)) depth++
  }
  return -1
}

/** The words of a statement; undefined where its text has a lexical error. */
export const wordsOf = (sql: string, standard: boolean): Words | undefined =>
  scanTokens(sql, standard) ? new Words(sql) : undefined
