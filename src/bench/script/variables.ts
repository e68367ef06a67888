/** The variables of one client, and their place in SQL text. Source followed: assignVariables, parseQuery in pgbench.c. */
import { formatValue, parseValue, scriptFailure, type Value } from './value.js'

interface Entry {
  text: string | undefined
  value: Value | undefined
}

const namePattern = /^[A-Za-z_\u0080-\u{10ffff}][A-Za-z0-9_\u0080-\u{10ffff}]*$/u

export class Variables {
  readonly #entries = new Map<string, Entry>()

  #entry(name: string, context: string): Entry {
    let entry = this.#entries.get(name)
    if (entry === undefined) {
      if (!namePattern.test(name))
        throw scriptFailure(`${context}: invalid variable name: "${name}"`)
      entry = { text: undefined, value: undefined }
      this.#entries.set(name, entry)
    }
    return entry
  }

  has(name: string): boolean {
    return this.#entries.has(name)
  }

  /** From -D or a result: what it means is decided when an expression asks. */
  setText(name: string, text: string, context: string): void {
    const entry = this.#entry(name, context)
    entry.text = text
    entry.value = undefined
  }

  setValue(name: string, value: Value, context: string): void {
    const entry = this.#entry(name, context)
    entry.value = value
    entry.text = undefined
  }

  text(name: string): string | undefined {
    const entry = this.#entries.get(name)
    if (entry === undefined) return undefined
    entry.text ??= formatValue(entry.value ?? null)
    return entry.text
  }

  value(name: string): Value | undefined {
    const entry = this.#entries.get(name)
    if (entry === undefined) return undefined
    if (entry.value === undefined) entry.value = parseValue(entry.text ?? '', name)
    return entry.value
  }
}

/** A statement cut at its `:name`s, wherever they stand: in strings and comments too, as pgbench does. */
export interface SqlTemplate {
  /** One more than names. */
  readonly pieces: readonly string[]
  readonly names: readonly string[]
}

/** A run of colons is skipped whole, so that "::type" is a cast. */
const reference = /:([A-Za-z_\u0080-\u{10ffff}][A-Za-z0-9_\u0080-\u{10ffff}]*)|:+/gu

export function cutSql(sql: string): SqlTemplate {
  const pieces: string[] = []
  const names: string[] = []
  let from = 0
  for (const match of sql.matchAll(reference)) {
    if (match[1] === undefined) continue
    pieces.push(sql.slice(from, match.index))
    names.push(match[1])
    from = match.index + match[0].length
  }
  pieces.push(sql.slice(from))
  return { pieces, names }
}

/** Simple protocol: values in the text; an unknown name stays as it is. */
export function fillSql(template: SqlTemplate, variables: Variables): string {
  const { pieces, names } = template
  let sql = pieces[0] as string
  for (let i = 0; i < names.length; i++) {
    const name = names[i] as string
    sql += (variables.text(name) ?? `:${name}`) + pieces[i + 1]
  }
  return sql
}

/** Extended and prepared protocol: each occurrence is a parameter of its own. */
export const parameterSql = ({ pieces }: SqlTemplate): string =>
  pieces.reduce((sql, piece, i) => `${sql}$${i}${piece}`)
