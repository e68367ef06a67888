/** Random choices from a seed: the same on every machine. */
export interface Random {
  below(limit: number): number
  pick<T>(items: readonly T[]): T
  chance(share: number): boolean
  /** Fewer than `limit` of the items behind each other. */
  some(limit: number, items: readonly string[]): string
}

/** mulberry32. */
export function makeRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  const below = (limit: number) => Math.floor(next() * limit)
  const pick = <T>(items: readonly T[]) => items[below(items.length)] as T
  return {
    below,
    pick,
    chance: (share) => next() < share,
    some: (limit, items) => Array.from({ length: below(limit) }, () => pick(items)).join(''),
  }
}
