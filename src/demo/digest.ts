/**
 * Tells whether two sets of rows are equal without keeping them: how many there are, and the sums
 * of two hashes of each. Rows may come in any order, and be taken away again.
 */

/** A value as PostgreSQL's text, or NULL. */
export type Field = string | null

/** Two 32-bit hashes of a row; NULL, the empty string and field borders count. */
function hashRow(fields: readonly Field[]): [number, number] {
  let a = 0x9e3779b9
  let b = 0x85ebca6b
  const mix = (code: number) => {
    a = Math.imul(a ^ code, 0x01000193)
    b = Math.imul(b ^ code, 0xc2b2ae35)
    b ^= b >>> 13
  }
  for (const field of fields) {
    if (field === null) mix(0x10001)
    else for (let i = 0; i < field.length; i++) mix(field.charCodeAt(i))
    mix(0x10000)
  }
  return [a ^ (a >>> 15), b ^ (b >>> 16)]
}

export class Digest {
  #rows = 0
  #first = 0
  #second = 0

  get rows(): number {
    return this.#rows
  }

  add(fields: readonly Field[]): void {
    this.#change(fields, 1)
  }

  remove(fields: readonly Field[]): void {
    this.#change(fields, -1)
  }

  #change(fields: readonly Field[], sign: 1 | -1): void {
    const [first, second] = hashRow(fields)
    this.#rows += sign
    this.#first = (this.#first + sign * first) | 0
    this.#second = (this.#second + sign * second) | 0
  }

  equals(other: Digest): boolean {
    return this.toString() === other.toString()
  }

  /** Twelve characters and the count; equal for equal sets. */
  toString(): string {
    const hex = (value: number) => (value >>> 0).toString(16).padStart(8, '0')
    return `${this.#rows}:${hex(this.#first)}${hex(this.#second)}`
  }
}
