/** The order of one column by the type's btree class in PostgreSQL. A value is decoded once, into a numbered slot, and compared often. */
export interface Comparator {
  /** Decodes the value [from, to) into a slot. The bytes must not change until the slot is read into again, or kept elsewhere. */
  read(bytes: Buffer, from: number, to: number, slot: number): void
  /** Negative, 0 or positive. */
  compare(a: number, b: number): number
  /** Copies a slot into another, which then needs no borrowed bytes. */
  keep(from: number, to: number): void
  /** Equal strings for equal values. */
  identity(slot: number): string
}

/** Room for more slots, the old ones kept. */
export function grown(array: Float64Array<ArrayBuffer>, slot: number): Float64Array<ArrayBuffer> {
  const bigger = new Float64Array(Math.max(slot + 1, array.length * 2, 16))
  bigger.set(array)
  return bigger
}
