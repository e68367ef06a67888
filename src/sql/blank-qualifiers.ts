/**
 * Takes schemas away from names in a text, each character replaced by a blank, so that error positions stay what they were;
 * or puts another in their place.
 */
import type { QualifiedName } from './gather-facts.js'
import { scanTokens, TokenKind, tokens } from './lexer.js'

function tokenAt(at: number): number {
  let low = 0
  let high = tokens.count
  while (low < high) {
    const middle = (low + high) >> 1
    if (tokens.starts[middle]! < at) low = middle + 1
    else high = middle
  }
  return low < tokens.count && tokens.starts[low] === at ? low : -1
}

function nextToken(from: number): number {
  let at = from + 1
  while (at < tokens.count && tokens.kinds[at] === TokenKind.comment) at++
  return at
}

/** Where the part behind the dropped ones begins, or -1. */
function keptFrom(sql: string, { at, drop, isLast }: QualifiedName): number {
  const isDot = (token: number): boolean =>
    token < tokens.count && sql.slice(tokens.starts[token], tokens.ends[token]) === '.'
  let token = tokenAt(at)
  if (token < 0) return -1
  for (let i = 0; i < drop; i++) {
    const dot = nextToken(token)
    if (!isDot(dot)) return -1
    token = nextToken(dot)
    if (token >= tokens.count) return -1
  }
  // database.schema.table
  if (isLast && isDot(nextToken(token))) return -1
  return tokens.starts[token]!
}

/** A server counts characters, not UTF-16 units. */
const blanks = (text: string): string => ' '.repeat([...text].length)

/** Undefined when a name is not written as plain parts and points. */
export function blankQualifiers(
  sql: string,
  names: readonly QualifiedName[],
  standard: boolean,
): string | undefined {
  const wanted = names.filter(({ drop }) => drop > 0).sort((a, b) => a.at - b.at)
  if (wanted.length === 0) return sql
  if (!scanTokens(sql, standard)) return undefined
  let text = ''
  let from = 0
  for (const name of wanted) {
    const kept = keptFrom(sql, name)
    if (kept < 0) return undefined
    text += sql.slice(from, name.at) + (name.becomes ?? blanks(sql.slice(name.at, kept)))
    from = kept
  }
  return text + sql.slice(from)
}
