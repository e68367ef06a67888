/** Names and literals in SQL that setup writes. Pure. */

export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`

export const quoteLiteral = (text: string): string => {
  const doubled = text.replaceAll("'", "''")
  return text.includes('\\') ? `E'${doubled.replaceAll('\\', '\\\\')}'` : `'${doubled}'`
}

export const qualified = (table: { schema: string; name: string }): string =>
  `${quoteName(table.schema)}.${quoteName(table.name)}`
