/** Cutting an INSERT at its query, by the client's own characters. */
import { close, dot, open, outside, type Words, wordsOf } from './write-words.js'

export interface InsertText {
  /** The query by itself: the statement's WITH before it. */
  readonly query: string
  readonly overridesSystem: boolean
  /** ON CONFLICT and RETURNING. */
  readonly tail: string
}

const queryWords = new Set(['select', 'with', 'values', 'table'])

function behindBracket(words: Words, from: number): number {
  let depth = 0
  for (let i = from; i < words.count; i++) {
    if (words.symbol(i) === open) depth++
    if (words.symbol(i) === close && --depth === 0) return i + 1
  }
  return words.count
}

/** A bracket may hold the columns or the query. */
function queryAt(words: Words, into: number): number {
  return outside(words, into + 1, (i) => {
    // behind a bracket nothing of it is looked at
    if (words.symbol(i) !== open)
      return queryWords.has(words.word(i)) && words.symbol(i - 1) !== dot
    return queryWords.has(words.word(i + 1)) || words.symbol(i + 1) === open
  })
}

const isConflict = (words: Words, i: number): boolean =>
  words.word(i) === 'on' &&
  words.word(i + 1) === 'conflict' &&
  (words.symbol(i + 2) === open || ['do', 'on'].includes(words.word(i + 2)))

export function cutInsert(sql: string, standard: boolean): InsertText | undefined {
  const words = wordsOf(sql, standard)
  if (!words) return undefined
  const insert = outside(
    words,
    0,
    (i) => words.word(i) === 'insert' && words.word(i + 1) === 'into',
  )
  const from = insert < 0 ? -1 : queryAt(words, insert + 1)
  if (from < 0) return undefined
  const start = words.symbol(from) === open ? behindBracket(words, from) : from
  const end = outside(
    words,
    start,
    (i) => (words.word(i) === 'returning' && words.symbol(i - 1) !== dot) || isConflict(words, i),
  )
  const tailAt = end < 0 ? words.count : end
  const before = sql.slice(0, words.start(insert))
  const own = sql.slice(words.start(from), words.end(tailAt - 1))
  const nested = insert > 0 && words.word(from) === 'with'
  let overridesSystem = false
  for (let i = insert; i < from; i++) {
    if (words.word(i) === 'overriding' && words.word(i + 1) === 'system') overridesSystem = true
  }
  return {
    query: `${before}${nested ? `(${own})` : own}`,
    overridesSystem,
    tail:
      tailAt < words.count ? ` ${sql.slice(words.start(tailAt), words.end(words.count - 1))}` : '',
  }
}
