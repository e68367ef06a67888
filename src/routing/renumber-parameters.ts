/** Parameters of a text that is a part of another: a server wants them numbered without gaps, and all of them named. */
import { scanTokens, TokenKind, tokens } from '../sql/lexer.js'

export interface Renumbered {
  readonly sql: string
  /** Which of the client's parameters (from 0) each of the text's is, in order. */
  readonly kept: readonly number[]
}

/** `standard`: standard_conforming_strings of the client. */
export function renumberParameters(sql: string, standard = true): Renumbered {
  if (!sql.includes('$') || !scanTokens(sql, standard)) return { sql, kept: [] }
  const places: { start: number; end: number; index: number }[] = []
  for (let i = 0; i < tokens.count; i++) {
    if (tokens.kinds[i] !== TokenKind.parameter) continue
    const start = tokens.starts[i]!
    const end = tokens.ends[i]!
    places.push({ start, end, index: Number(sql.slice(start + 1, end)) - 1 })
  }
  const kept = [...new Set(places.map((place) => place.index))].sort((a, b) => a - b)
  if (kept.every((index, at) => index === at)) return { sql, kept }
  let text = ''
  let at = 0
  for (const { start, end, index } of places) {
    text += `${sql.slice(at, start)}$${kept.indexOf(index) + 1}`
    at = end
  }
  return { sql: text + sql.slice(at), kept }
}
