/** Words of a `\set`, `\if` or `\elif` expression. Source followed: exprscan.l. */
import { maxInt, parseDouble } from './value.js'

export type Token =
  | { readonly kind: 'operator'; readonly text: string }
  | { readonly kind: 'keyword'; readonly text: string }
  | { readonly kind: 'variable' | 'function'; readonly text: string }
  | { readonly kind: 'int'; readonly value: bigint; readonly text: string }
  | { readonly kind: 'double'; readonly value: number; readonly text: string }
  | { readonly kind: 'end'; readonly text: '' }

/** What is wrong with an expression; the script parser adds file, line and command. */
export class ExpressionError extends Error {
  readonly more: string | undefined

  constructor(message: string, more?: string) {
    super(message)
    this.more = more
  }
}

const keywords = new Set(
  'and or not is isnull notnull case when then else end null true false'.split(' '),
)

const rules: readonly [RegExp, (text: string) => Token | undefined][] = [
  [/\s+|\\\r?\n/y, () => undefined],
  [/<>|!=|<=|>=|<<|>>|[-+*/%=<>|&#~(),]/y, (text) => ({ kind: 'operator', text })],
  [/:[A-Za-z0-9_\u0080-\u{10ffff}]+/uy, (text) => ({ kind: 'variable', text: text.slice(1) })],
  [/(?:\d+\.\d*|\.\d+)(?:[eE][-+]?\d+)?|\d+[eE][-+]?\d+/y, doubleToken],
  [/\d+/y, intToken],
  [/[A-Za-z_\u0080-\u{10ffff}][A-Za-z0-9_\u0080-\u{10ffff}]*/uy, wordToken],
]

function doubleToken(text: string): Token {
  const value = parseDouble(text)
  if (value === undefined) throw new ExpressionError('double constant overflow', text)
  return { kind: 'double', value, text }
}

function intToken(text: string): Token {
  const value = BigInt(text)
  // One past the largest is let through for "-9223372036854775808".
  if (value > maxInt + 1n) throw new ExpressionError('bigint constant overflow', text)
  return { kind: 'int', value, text }
}

function wordToken(text: string): Token {
  const lower = text.toLowerCase()
  return keywords.has(lower) ? { kind: 'keyword', text: lower } : { kind: 'function', text }
}

function matchAt(text: string, at: number): { length: number; token: Token | undefined } {
  for (const [pattern, make] of rules) {
    pattern.lastIndex = at
    const found = pattern.exec(text)
    if (found !== null) return { length: found[0].length, token: make(found[0]) }
  }
  throw new ExpressionError('unexpected character', text[at])
}

export function lexExpression(text: string): Token[] {
  const tokens: Token[] = []
  let at = 0
  while (at < text.length) {
    const { length, token } = matchAt(text, at)
    if (token !== undefined) tokens.push(token)
    at += length
  }
  tokens.push({ kind: 'end', text: '' })
  return tokens
}
