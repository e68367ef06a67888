/**
 * A text that asks for the time of its transaction → the same with that time written in, for a server that is not in the
 * transaction. Columns keep the names that PostgreSQL gives such calls.
 */
import { clockText, clockUses, type Edit, spliced } from './writes/write-text.js'

/** What the edits leave over: names in quotes, which are found in no other way. */
const leftOver =
  /\b(?:now|transaction_timestamp)"?\s*\(|\b(?:current_(?:date|time|timestamp)|localtime(?:stamp)?)\b/i

/** `now` is the text of a timestamptz. Undefined: not every place could be told. */
export function withFixedClock(sql: string, standard: boolean, now: string): string | undefined {
  const uses = clockUses(sql, standard)
  const blank = uses.map(({ start, end }): Edit => ({ start, end, text: ' ' }))
  if (leftOver.test(spliced(sql, 0, sql.length, blank))) return undefined
  const edits = uses.map(({ start, end, type }): Edit => {
    const name = /^(?:pg_catalog\s*\.\s*)?(\w+)/i.exec(sql.slice(start, end))?.[1]?.toLowerCase()
    return { start, end, text: `(SELECT ${clockText(now, type)} AS "${name}")` }
  })
  return spliced(sql, 0, sql.length, edits)
}
