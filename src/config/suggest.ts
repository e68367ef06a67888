/** "Did you mean": the nearest of some names. */

/** Levenshtein's distance. */
function distance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change))
    }
    row = next
  }
  return row[b.length] ?? 0
}

const plain = (text: string): string => text.toLowerCase().replace(/[-_ :]/g, '')

/** The candidate nearest to `word` when it is near enough: a third of its letters wrong at most, or the same but for case and dashes. */
export function nearest(word: string, candidates: Iterable<string>): string | undefined {
  let best: string | undefined
  let least = Number.POSITIVE_INFINITY
  for (const candidate of candidates) {
    const far = distance(plain(word), plain(candidate))
    if (far < least) {
      least = far
      best = candidate
    }
  }
  return least <= Math.max(1, Math.floor(plain(word).length / 3)) ? best : undefined
}
