/**
 * The keyword/value form of a connection string: `host=a port=5432 password='it\'s'`.
 * Source followed: conninfo_parse in fe-connect.c.
 */
import { type ConninfoValues, conninfoError, storeValue } from './conninfo-options.js'

const isSpace = (char: string | undefined): boolean =>
  char !== undefined && ' \t\n\v\f\r'.includes(char)

interface Cursor {
  readonly text: string
  at: number
}

function skipSpace(cursor: Cursor): void {
  while (isSpace(cursor.text[cursor.at])) cursor.at++
}

function readKeyword(cursor: Cursor): string {
  const start = cursor.at
  const { text } = cursor
  while (cursor.at < text.length && text[cursor.at] !== '=' && !isSpace(text[cursor.at]))
    cursor.at++
  const keyword = text.slice(start, cursor.at)
  skipSpace(cursor)
  if (text[cursor.at] !== '=')
    throw conninfoError(`missing "=" after "${keyword}" in connection info string`)
  cursor.at++
  return keyword
}

function readBare(cursor: Cursor): string {
  let value = ''
  while (cursor.at < cursor.text.length && !isSpace(cursor.text[cursor.at])) {
    if (cursor.text[cursor.at] === '\\') cursor.at++
    value += cursor.text[cursor.at++] ?? ''
  }
  return value
}

function readQuoted(cursor: Cursor): string {
  let value = ''
  cursor.at++
  for (;;) {
    let char = cursor.text[cursor.at++]
    if (char === undefined) break
    if (char === "'") return value
    if (char === '\\') char = cursor.text[cursor.at++]
    value += char ?? ''
  }
  throw conninfoError('unterminated quoted string in connection info string')
}

/** Keyword/value text → values; the last of two equal keywords wins. */
export function parseConninfoText(text: string): ConninfoValues {
  const values: ConninfoValues = {}
  const cursor = { text, at: 0 }
  for (;;) {
    skipSpace(cursor)
    if (cursor.at >= text.length) return values
    const keyword = readKeyword(cursor)
    skipSpace(cursor)
    const value = text[cursor.at] === "'" ? readQuoted(cursor) : readBare(cursor)
    if (!storeValue(values, keyword, value))
      throw conninfoError(`invalid connection option "${keyword}"`)
  }
}
