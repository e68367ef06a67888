/**
 * Cutting an UPDATE at its clauses, by the client's own characters: what its rows are found by, what is assigned, what is
 * returned. Undefined where the text cannot be told apart for certain.
 */
import { close, comma, dot, open, outside, type Words, wordsOf } from './write-words.js'

export interface AssignedText {
  /** In the order of the facts' `assigned`. */
  readonly value: string | 'default'
}

export interface UpdateText {
  /** All before UPDATE: WITH and its queries, or nothing. */
  readonly before: string
  /** `ONLY schema.t AS x`. */
  readonly target: string
  /** All of SET. */
  readonly set: string
  /** One for each column. */
  readonly assigned: readonly AssignedText[]
  readonly from: string | undefined
  readonly where: string | undefined
  /** With its word. */
  readonly returning: string
}

const equals = 61

const isClause = (words: Words, i: number, word: string): boolean => {
  if (words.word(i) !== word || words.symbol(i - 1) === dot) return false
  // IS [NOT] DISTINCT FROM
  return !(word === 'from' && words.word(i - 1) === 'distinct')
}

const clauseAt = (words: Words, from: number, word: string): number => {
  const at = outside(words, from, (i) => isClause(words, i, word))
  return at < 0 ? words.count : at
}

/** The token behind the value list whose bracket stands at `from`. */
function behindBracket(words: Words, from: number): number {
  let depth = 0
  for (let i = from; i < words.count; i++) {
    if (words.symbol(i) === open) depth++
    if (words.symbol(i) === close && --depth === 0) return i + 1
  }
  return words.count
}

/** Ends of the items of a list that stands in [from, to), cut at commas outside of brackets. */
function items(words: Words, from: number, to: number): [number, number][] {
  const found: [number, number][] = []
  let first = from
  for (let i = from; i < to; ) {
    i = outside(words, i, (each) => each >= to || words.symbol(each) === comma)
    if (i < 0 || i >= to) break
    found.push([first, i])
    first = ++i
  }
  found.push([first, to])
  return found
}

const subquery = new Set(['select', 'with', 'values', 'table'])

class Assignments {
  readonly found: AssignedText[] = []
  readonly #words: Words
  readonly #sql: string

  constructor(words: Words, sql: string) {
    this.#words = words
    this.#sql = sql
  }

  /** False: in a form that cannot be cut. */
  add(from: number, to: number): boolean {
    const words = this.#words
    if (words.symbol(from) === open) return this.#addSeveral(from, to)
    if (words.symbol(from + 1) !== equals || from + 2 >= to) return false
    this.#take(from + 2, to)
    return true
  }

  /** (a, b) = (1, 2) and (a, b) = ROW (1, 2) */
  #addSeveral(from: number, to: number): boolean {
    const words = this.#words
    const behind = behindBracket(words, from)
    if (words.symbol(behind) !== equals) return false
    const list = words.word(behind + 1) === 'row' ? behind + 2 : behind + 1
    if (words.symbol(list) !== open || behindBracket(words, list) !== to) return false
    if (subquery.has(words.word(list + 1))) return false
    const values = items(words, list + 1, to - 1)
    const columns = items(words, from + 1, behind - 1)
    if (values.length !== columns.length) return false
    for (const [first, last] of values) this.#take(first, last)
    return true
  }

  #take(first: number, last: number): void {
    const words = this.#words
    const isDefault = last === first + 1 && words.word(first) === 'default'
    const text = this.#sql.slice(words.start(first), words.end(last - 1))
    this.found.push({ value: isDefault ? 'default' : text })
  }
}

/** The first UPDATE that is the statement's own. */
const updateAt = (words: Words): number =>
  outside(
    words,
    0,
    (i) => words.word(i) === 'update' && words.word(i + 1) !== 'as' && words.symbol(i + 1) !== open,
  )

export function cutUpdate(sql: string, standard: boolean): UpdateText | undefined {
  const words = wordsOf(sql, standard)
  const update = words ? updateAt(words) : -1
  if (!words || update < 0) return undefined
  const named = words.word(update + 1) === 'only' ? update + 2 : update + 1
  const set = clauseAt(words, named + 1, 'set')
  const returning = clauseAt(words, set + 1, 'returning')
  const where = Math.min(clauseAt(words, set + 1, 'where'), returning)
  const from = Math.min(clauseAt(words, set + 1, 'from'), where)
  if (set >= words.count) return undefined
  // WHERE CURRENT OF names a row that only its cursor knows
  if (words.word(where + 1) === 'current' && words.word(where + 2) === 'of') return undefined
  const text = (first: number, last: number): string =>
    first < last ? sql.slice(words.start(first), words.end(last - 1)) : ''
  const assigned = new Assignments(words, sql)
  for (const [first, last] of items(words, set + 1, from)) {
    if (!assigned.add(first, last)) return undefined
  }
  return {
    before: sql.slice(0, words.start(update)),
    target: text(update + 1, set),
    set: text(set + 1, from),
    assigned: assigned.found,
    from: from < where ? text(from + 1, where) : undefined,
    where: where < returning ? text(where + 1, returning) : undefined,
    returning: text(returning, words.count),
  }
}
