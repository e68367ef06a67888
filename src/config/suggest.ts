/** "Did you mean": the nearest of some names. */

/** Edits that make `b` of `a`: a letter more, less, other, or two swapped. */
function distance(a: string, b: string): number {
  let before: number[] = []
  let row = Array.from({ length: b.length + 1 }, (_, i) => i)
  for (let i = 1; i <= a.length; i++) {
    const next = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (row[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      const swap = swapped ? (before[j - 2] ?? 0) + 1 : change
      next.push(Math.min((row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1, change, swap))
    }
    before = row
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
