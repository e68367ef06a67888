/** Statements for the eyes of people: literals and comments, which may hold anything, are left out. */
import { scanTokens, TokenKind, tokens } from '../sql/lexer.js'

const hidden = new Set<number>([
  TokenKind.integer,
  TokenKind.float,
  TokenKind.string,
  TokenKind.bitString,
])

/** `sql` with `?` for each literal, on one line. What cannot be read is reduced to its first word. */
export function redactLiterals(sql: string): string {
  if (!scanTokens(sql)) return `${/^\s*(\w*)/.exec(sql)?.[1] ?? ''} …`
  let text = ''
  let at = 0
  for (let i = 0; i < tokens.count; i++) {
    const start = tokens.starts[i] as number
    const end = tokens.ends[i] as number
    const kind = tokens.kinds[i] as number
    text += sql.slice(at, start)
    if (hidden.has(kind)) text += '?'
    else if (kind !== TokenKind.comment) text += sql.slice(start, end)
    at = end
  }
  return (text + sql.slice(at)).replace(/\s+/g, ' ').trim()
}

/** The same with lists of any length as one, so that statements that differ in their number of values are one too. */
export const shapeOf = (sql: string): string =>
  redactLiterals(sql)
    .replace(/(\?|\$\d+)(?:\s*,\s*(?:\?|\$\d+))+/g, '$1, …')
    .replace(/(\((?:\?|\$\d+)(?:, …)?\))(?:\s*,\s*\((?:\?|\$\d+)(?:, …)?\))+/g, '$1, …')
