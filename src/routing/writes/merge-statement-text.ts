/** Cutting the VALUES that a MERGE uses, by the client's own characters. */
import { close, comma, open, outside, type Words, wordsOf } from './write-words.js'

function rowsFrom(words: Words, from: number): { starts: number[]; ends: number[]; last: number } {
  const rows = { starts: [] as number[], ends: [] as number[], last: from }
  let depth = 0
  for (let i = from; i < words.count; i++) {
    const symbol = words.symbol(i)
    if (symbol === open && depth++ === 0) rows.starts.push(words.start(i))
    if (symbol === close) {
      if (depth === 0) {
        rows.last = i
        break
      }
      if (--depth === 0) rows.ends.push(words.end(i))
    } else if (depth === 0 && symbol !== comma && symbol !== open) break
  }
  return rows
}

/**
 * The text with some of its rows. All of them stay in the text, so that the types of their columns stay what they are;
 * which of them count is said by a number behind each.
 */
export function cutMergeRows(
  sql: string,
  count: number,
  width: number,
  standard: boolean,
): ((rows: readonly number[]) => string) | undefined {
  const words = wordsOf(sql, standard)
  if (!words) return undefined
  const using = outside(words, 0, (i) => words.word(i) === 'using')
  if (using < 0 || words.symbol(using + 1) !== open || words.word(using + 2) !== 'values')
    return undefined
  const { starts, ends, last } = rowsFrom(words, using + 3)
  if (starts.length !== count || ends.length !== count || words.symbol(last) !== close)
    return undefined
  const columns = Array.from({ length: width }, (_, i) => `column${i + 1}`).join(', ')
  const numbered = starts.map((start, i) => `${sql.slice(start, ends[i]! - 1)}, ${i})`).join(', ')
  const head = sql.slice(0, words.end(using + 1))
  const tail = sql.slice(words.start(last))
  return (rows) =>
    `${head}SELECT ${columns} FROM (VALUES ${numbered}) AS pgshard_rows (${columns}, pgshard_row) WHERE pgshard_row IN (${rows.join(', ')})${tail}`
}
