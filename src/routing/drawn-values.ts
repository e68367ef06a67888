/**
 * Values that a server computes for us before a write is cut up: defaults that draw from a sequence, key expressions, the
 * time of the transaction. Each is asked for with its type, and written into the client's text as a literal of that type.
 */

import type { KeyType } from '../datum/key-type.js'
import { numericAsBigInt, readNumericText } from '../datum/numeric.js'
import type { DrawnResult } from '../plan/split-program.js'
import { quoteText } from './writes/write-text.js'

/** Types that keys may be given, by their oids. */
const literalTypes = new Map<number, string>([
  [20, 'int8'],
  [21, 'int2'],
  [23, 'int4'],
  [25, 'text'],
  [1042, 'bpchar'],
  [1043, 'varchar'],
  [1082, 'date'],
  [1114, 'timestamp'],
  [1184, 'timestamptz'],
  [1700, 'numeric'],
  [2950, 'uuid'],
])

const integers = new Set(['int8', 'int4', 'int2'])
const texts = new Set(['text', 'varchar'])

/** Types whose values a key of each type stores as they are. */
function fits(keyType: KeyType, type: string): boolean {
  switch (keyType) {
    case 'bigint':
    case 'integer':
    case 'smallint':
      return integers.has(type) || type === 'numeric'
    case 'numeric':
      return integers.has(type) || type === 'numeric'
    case 'text':
    case 'varchar':
      return texts.has(type)
    default:
      return keyType === type
  }
}

export interface DrawnValue {
  /** In the text form of its type. */
  readonly text: string | null
  readonly typeOid: number
}

/** How a drawn value is written; its type is kept, so that it is assigned as the expression would have been. */
export function drawnLiteral({ text, typeOid }: DrawnValue): string {
  if (text === null) return 'NULL'
  const type = literalTypes.get(typeOid)
  return type === undefined ? quoteText(text) : `${quoteText(text)}::pg_catalog.${type}`
}

/** What a key column of `keyType` stores of a drawn value, as text; undefined where that cannot be said. */
export function drawnKey({ text, typeOid }: DrawnValue, keyType: KeyType): string | undefined {
  const type = literalTypes.get(typeOid)
  if (text === null || type === undefined || !fits(keyType, type)) return undefined
  if (type !== 'numeric' || keyType === 'numeric') return text
  const number = readNumericText(text)
  const whole = typeof number === 'string' ? undefined : numericAsBigInt(number)
  return whole === undefined ? undefined : String(whole)
}

/** More columns than this a query cannot have. */
const MOST_COLUMNS = 500

/** Queries to be asked in one string, and what becomes of their results, in order. */
export class Drawing {
  readonly #queries: string[] = []
  readonly #takers: ((result: DrawnResult) => void)[] = []
  usesClock = false

  get isEmpty(): boolean {
    return this.#queries.length === 0
  }

  get count(): number {
    return this.#queries.length
  }

  get sql(): string {
    return this.#queries.join('; ')
  }

  /** The same expression for each of several rows. */
  addRepeated(expression: string, takers: readonly ((value: DrawnValue) => void)[]): void {
    if (takers.length === 0) return
    const rows = `pg_catalog.generate_series(1, ${takers.length})`
    this.#add(`SELECT (${expression}) FROM ${rows}`, ({ columns, rows }) => {
      const typeOid = columns[0]?.typeOid ?? 0
      for (const [i, take] of takers.entries()) take({ text: rows[i]?.[0] ?? null, typeOid })
    })
  }

  /** An expression of each row's own. */
  addEach(expressions: readonly { text: string; take: (value: DrawnValue) => void }[]): void {
    for (let from = 0; from < expressions.length; from += MOST_COLUMNS) {
      const some = expressions.slice(from, from + MOST_COLUMNS)
      const list = some.map(({ text }) => `(${text})`).join(', ')
      this.#add(`SELECT ${list}`, ({ columns, rows }) => {
        for (const [i, { take }] of some.entries()) {
          take({ text: rows[0]?.[i] ?? null, typeOid: columns[i]?.typeOid ?? 0 })
        }
      })
    }
  }

  addClock(take: (now: string) => void): void {
    this.usesClock = true
    this.#add('SELECT pg_catalog.now()', ({ rows }) => take(rows[0]?.[0] ?? ''))
  }

  take(results: readonly DrawnResult[]): void {
    for (const [i, take] of this.#takers.entries()) take(results[i] ?? { columns: [], rows: [] })
  }

  #add(sql: string, take: (result: DrawnResult) => void): void {
    this.#queries.push(sql)
    this.#takers.push(take)
  }
}
