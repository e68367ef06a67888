/** Copies of a few bytes: a call into the runtime costs more than they do, and makes objects. */

/** Above so many the runtime is faster. */
const FEW = 160

/** Copies source[start, end) to `target` at `at`; returns where it ends there. */
export function copyBytes(
  source: Uint8Array,
  start: number,
  end: number,
  target: Uint8Array,
  at: number,
): number {
  const length = end - start
  if (length > FEW) target.set(source.subarray(start, end), at)
  else for (let i = 0; i < length; i++) target[at + i] = source[start + i] as number
  return at + length
}
