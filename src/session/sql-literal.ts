/** The text of a SQL literal or word, as it stands behind `SET name TO`. */
export function unquote(sqlValue: string): string {
  const match = /^E?'((?:[^']|'')*)'$/i.exec(sqlValue.trim())
  return match ? (match[1] as string).replaceAll("''", "'") : sqlValue.trim()
}
