/**
 * Cutting and splicing the client's own text of a write: its VALUES row by row, values put in the place of others, columns
 * added. Offsets are those of the lexer; nothing is ever printed from a tree.
 */
import {
  close,
  closes,
  comma,
  dot,
  open,
  opens,
  outside,
  type Words,
  wordsOf,
} from './write-words.js'

/** Text for sql[start, end). */
export interface Edit {
  readonly start: number
  readonly end: number
  readonly text: string
}

export interface ValueRows {
  /** Each row with its parentheses. */
  readonly starts: number[]
  readonly ends: number[]
  /** For each row from, to of its values, one behind the other. */
  readonly values: number[][]
  /** Where `("a", "b")` or what is added to it goes: before the closing parenthesis of the columns, or before VALUES. */
  readonly columnsAt: number
  readonly hasColumns: boolean
  /** Where OVERRIDING may stand. */
  readonly valuesAt: number
  readonly overrides: boolean
  /** DEFAULT VALUES: one row without values, from DEFAULT to the end of VALUES. */
  readonly isDefaultValues: boolean
  /** Where RETURNING begins; the end of the text when there is none. */
  readonly returningAt: number
}

export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`

/** A literal that means the same whatever standard_conforming_strings is. */
export function quoteText(text: string): string {
  const quoted = text.replaceAll("'", "''")
  return text.includes('\\') ? ` E'${quoted.replaceAll('\\', '\\\\')}'` : `'${quoted}'`
}

/** One row that begins at token `from`; the token behind it. */
function cutRow(words: Words, from: number, values: number[]): number {
  let depth = 1
  let valueFrom = from + 1
  for (let i = from + 1; i < words.count; i++) {
    const symbol = words.symbol(i)
    if (opens(symbol)) depth++
    else if (closes(symbol)) depth--
    const ends = depth === 0 || (depth === 1 && symbol === comma)
    if (!ends) continue
    if (i > valueFrom) values.push(words.start(valueFrom), words.end(i - 1))
    valueFrom = i + 1
    if (depth === 0) return i + 1
  }
  return words.count
}

const isValues = (words: Words, i: number): boolean =>
  words.word(i) === 'values' && words.symbol(i + 1) === open

const isDefaultValues = (words: Words, i: number): boolean =>
  words.word(i) === 'default' && words.word(i + 1) === 'values'

/** The rows of INSERT … VALUES; undefined where they cannot be told for certain. */
export function cutValues(sql: string, standard: boolean): ValueRows | undefined {
  const words = wordsOf(sql, standard)
  if (!words) return undefined
  const into = outside(words, 0, (i) => words.word(i) === 'into')
  if (into < 0) return undefined
  const at = outside(words, into, (i) => isValues(words, i) || isDefaultValues(words, i))
  if (at < 0) return undefined
  const columnsFrom = outside(words, into, (i) => i >= at || words.symbol(i) === open)
  const hasColumns = columnsFrom >= 0 && columnsFrom < at
  const overriding = outside(words, into, (i) => i >= at || words.word(i) === 'overriding')
  const head = {
    hasColumns,
    valuesAt: words.start(at),
    overrides: overriding >= 0 && overriding < at,
    isDefaultValues: isDefaultValues(words, at),
  }
  const columnsAt = hasColumns
    ? closingOf(words, columnsFrom)
    : words.start(head.overrides ? overriding : at)
  if (columnsAt === undefined) return undefined
  return { ...head, columnsAt, ...cutRows(words, at, head.isDefaultValues) }
}

function closingOf(words: Words, from: number): number | undefined {
  const values: number[] = []
  const behind = cutRow(words, from, values)
  return behind <= words.count ? words.start(behind - 1) : undefined
}

function cutRows(
  words: Words,
  at: number,
  isDefault: boolean,
): Pick<ValueRows, 'starts' | 'ends' | 'values' | 'returningAt'> {
  const rows = { starts: [] as number[], ends: [] as number[], values: [] as number[][] }
  let i = at + 1
  if (isDefault) {
    rows.starts.push(words.start(at))
    rows.ends.push(words.end(at + 1))
    rows.values.push([])
    i = at + 2
  }
  while (!isDefault && words.symbol(i) === open) {
    const values: number[] = []
    rows.starts.push(words.start(i))
    i = cutRow(words, i, values)
    rows.ends.push(words.end(i - 1))
    rows.values.push(values)
    if (words.symbol(i) !== comma) break
    i++
  }
  const returning = outside(words, i, (each) => words.word(each) === 'returning')
  return { ...rows, returningAt: words.start(returning < 0 ? words.count : returning) }
}

/** sql[from, to) with the edits that lie in it; they are in order and do not overlap. */
export function spliced(sql: string, from: number, to: number, edits: readonly Edit[]): string {
  let text = ''
  let at = from
  for (const edit of edits) {
    if (edit.start < from || edit.end > to) continue
    text += sql.slice(at, edit.start) + edit.text
    at = edit.end
  }
  return text + sql.slice(at, to)
}

const clockWords: Readonly<Record<string, { type: string; mayBracket: boolean }>> = {
  now: { type: 'timestamptz', mayBracket: false },
  transaction_timestamp: { type: 'timestamptz', mayBracket: false },
  current_timestamp: { type: 'timestamptz', mayBracket: true },
  current_date: { type: 'date', mayBracket: false },
  current_time: { type: 'timetz', mayBracket: true },
  localtime: { type: 'time', mayBracket: true },
  localtimestamp: { type: 'timestamp', mayBracket: true },
}

const callsOf = new Set(['now', 'transaction_timestamp'])

/** Where a text asks for the time of its transaction, and the type that each place has. */
export interface ClockUse {
  readonly start: number
  readonly end: number
  /** `pg_catalog.date`, with the precision that was written. */
  readonly type: string
}

function clockUse(words: Words, i: number, sql: string): ClockUse | undefined {
  const word = words.word(i)
  const known = Object.hasOwn(clockWords, word) ? clockWords[word] : undefined
  if (!known) return undefined
  const qualified = words.symbol(i - 1) === dot
  if (callsOf.has(word)) {
    if (words.symbol(i + 1) !== open || words.symbol(i + 2) !== close) return undefined
    if (qualified && words.word(i - 2) !== 'pg_catalog') return undefined
    const start = words.start(qualified ? i - 2 : i)
    return { start, end: words.end(i + 2), type: `pg_catalog.${known.type}` }
  }
  if (qualified) return undefined
  const use = { start: words.start(i), end: words.end(i), type: `pg_catalog.${known.type}` }
  if (!known.mayBracket || words.symbol(i + 1) !== open || words.symbol(i + 3) !== close) return use
  const precision = sql.slice(words.start(i + 2), words.end(i + 2))
  return { start: use.start, end: words.end(i + 3), type: `${use.type}(${precision})` }
}

/** The places of a text where the time of the transaction stands, in order. */
export function clockUses(sql: string, standard: boolean): ClockUse[] {
  const words = wordsOf(sql, standard)
  if (!words) return []
  const uses: ClockUse[] = []
  for (let i = 0; i < words.count; i++) {
    const use = clockUse(words, i, sql)
    if (use) uses.push(use)
  }
  return uses
}

/** Where the RETURNING of UPDATE and DELETE begins, outside of all brackets. */
export function returningAt(sql: string, standard: boolean): number {
  const words = wordsOf(sql, standard)
  if (!words) return sql.length
  const at = outside(words, 0, (i) => words.word(i) === 'returning')
  return words.start(at < 0 ? words.count : at)
}

/** `now` is the text of a timestamptz. */
export const clockText = (now: string, type: string): string =>
  type === 'pg_catalog.timestamptz'
    ? `(${quoteText(now)}::pg_catalog.timestamptz)`
    : `(${quoteText(now)}::pg_catalog.timestamptz::${type})`

/** The type of a default that is nothing but the time of the transaction, as pg_get_expr writes it. */
export function clockDefault(text: string | undefined): string | undefined {
  const [only] = text === undefined ? [] : clockUses(text, true)
  return only?.start === 0 && only.end === text?.length ? only.type : undefined
}
