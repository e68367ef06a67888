/** How much a suite does: `quick` is what `npm test` runs, `full` what the issues name. */
export const testSize: 'quick' | 'full' =
  process.env['PGSHARD_TEST_SIZE'] === 'full' ? 'full' : 'quick'

/** The value for the size that runs. */
export const bySize = <T>(quick: T, full: T): T => (testSize === 'quick' ? quick : full)
