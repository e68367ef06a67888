/**
 * A death on purpose, for tests of resume: PGSHARD_FAULT names a point of a run (`copy:half`, or `copy:half#3` for the
 * third time it is reached). Obeyed only where NODE_ENV is `test`.
 */

/** What to do at the points of a run; undefined outside of tests. */
export function faultOf(
  env: Readonly<Record<string, string | undefined>>,
  die: () => void,
): ((point: string) => Promise<void>) | undefined {
  const wanted = env['PGSHARD_FAULT']
  if (env['NODE_ENV'] !== 'test' || !wanted) return undefined
  const [name, count] = wanted.split('#')
  let left = Number(count ?? 1)
  return async (point) => {
    if (point !== name) return
    left--
    if (left === 0) die()
  }
}
