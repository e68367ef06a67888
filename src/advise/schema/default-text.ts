/** The text of a column's default, cut out of its statement and written as PostgreSQL's catalogue would write it. */
import { scanTokens, TokenKind, tokens } from '../../sql/lexer.js'

/** What may follow a default in the definition of a column. */
const enders = new Set(
  'not null constraint primary unique check references generated collate deferrable initially'.split(
    ' ',
  ),
)

const sqlValues =
  /\b(?:current_(?:timestamp|date|time|user|role|catalog|schema)|localtimestamp|localtime|session_user)\b/gi

/** As the catalogue has it: functions in lower case, what SQL writes without parentheses in upper case. */
const asStored = (text: string): string =>
  text
    .replace(/\b[A-Za-z_]\w*(?=\()/g, (name) => name.toLowerCase())
    .replace(sqlValues, (name) => name.toUpperCase())

/** From `start` to the comma, parenthesis or clause that ends the expression. */
export function defaultText(sql: string, start: number): string {
  const rest = sql.slice(start)
  if (!scanTokens(rest, true)) return asStored(rest.trim())
  let depth = 0
  let end = 0
  for (let i = 0; i < tokens.count; i++) {
    const [from, to] = [tokens.starts[i]!, tokens.ends[i]!]
    const text = rest.slice(from, to)
    if (depth === 0 && endsHere(tokens.kinds[i]!, text, i > 0)) break
    if (text === '(' || text === '[') depth++
    if (text === ')' || text === ']') depth--
    end = to
  }
  return asStored(rest.slice(0, end))
}

/** NULL may begin a default, and ends one behind its first token. */
function endsHere(kind: number, text: string, isLater: boolean): boolean {
  if (kind === TokenKind.symbol) return text === ',' || text === ')' || text === ';'
  return kind === TokenKind.word && isLater && enders.has(text.toLowerCase())
}
