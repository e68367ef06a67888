/** Seeds of generated tests: fixed in the quick size, so that a run can be repeated; fresh in the full one, printed when a test fails. */
import fc from 'fast-check'
import { testSize } from './test-size.js'

const QUICK_SEED = 20260101
const FULL_RUNS = 1000

fc.configureGlobal(testSize === 'quick' ? { seed: QUICK_SEED } : { numRuns: FULL_RUNS })
