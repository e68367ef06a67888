/**
 * Cuts what a person types into statements at semicolons that stand outside quotes, dollar quotes,
 * comments and parentheses, as psql does. Standard-conforming strings are assumed, the server's default.
 */

const dollarTag = /\$(?:[A-Za-z_\u0080-\uffff][\w\u0080-\uffff]*)?\$/y

/** Index after the quoted thing, comment or single character that begins at `at`; -1: it does not end yet. */
function skip(text: string, at: number): number {
  const character = text[at]!
  if (character === "'" || character === '"') return endOfQuoted(text, at, character)
  if (character === '-' && text[at + 1] === '-') return after(text, '\n', at)
  if (character === '/' && text[at + 1] === '*') return endOfBlockComment(text, at)
  if (character !== '$' || /\w/.test(text[at - 1] ?? '')) return at + 1
  dollarTag.lastIndex = at
  const tag = dollarTag.exec(text)?.[0]
  return tag === undefined ? at + 1 : after(text, tag, at + tag.length)
}

function after(text: string, end: string, from: number): number {
  const found = text.indexOf(end, from)
  return found === -1 ? -1 : found + end.length
}

/** Doubled quotes end and begin again, which comes to the same. E'…' takes a backslash along. */
function endOfQuoted(text: string, at: number, quote: string): number {
  const hasEscapes =
    quote === "'" && /[eE]/.test(text[at - 1] ?? '') && !/\w/.test(text[at - 2] ?? '')
  for (let index = at + 1; index < text.length; index++) {
    if (hasEscapes && text[index] === '\\') index++
    else if (text[index] === quote) return index + 1
  }
  return -1
}

function endOfBlockComment(text: string, at: number): number {
  let depth = 1
  let index = at + 2
  while (depth > 0) {
    const pair = text.slice(index, index + 2)
    if (pair.length < 2) return -1
    if (pair === '/*') depth++
    else if (pair === '*/') depth--
    index += pair === '/*' || pair === '*/' ? 2 : 1
  }
  return index
}

/** The whole statements of `text`, without their semicolons, and what is left. */
export function cutStatements(text: string): { statements: string[]; rest: string } {
  const statements: string[] = []
  let begin = 0
  let depth = 0
  for (let at = 0; at < text.length; ) {
    const next = skip(text, at)
    if (next === -1) break
    const character = text[at]
    if (character === '(') depth++
    else if (character === ')') depth = Math.max(0, depth - 1)
    else if (character === ';' && depth === 0) {
      const statement = text.slice(begin, at).trim()
      if (statement !== '') statements.push(statement)
      begin = next
    }
    at = next
  }
  return { statements, rest: text.slice(begin) }
}
