/** Names and literals in SQL text that we write ourselves. Pure. */

export const quoteName = (name: string): string => `"${name.replace(/"/g, '""')}"`

export const qualifiedName = (table: { schema: string; name: string }): string =>
  `${quoteName(table.schema)}.${quoteName(table.name)}`

export const quoteLiteral = (text: string): string => {
  const doubled = text.replace(/'/g, "''")
  return text.includes('\\') ? ` E'${doubled.replace(/\\/g, '\\\\')}'` : `'${doubled}'`
}
