/**
 * The steps of a move, in order: the one list that a run walks, that resume takes up again, and whose points tests end
 * a run at. Each step may be entered again after a death at any of its points.
 */

import { settlingPoints } from '../buckets/empty-shards.js'
import { cutoverPoints } from '../cutover/cutover.js'
import type { RunState } from '../journal/journal.js'
import { copyStep } from './copy-step.js'
import { cutoverStep, finishStep } from './cutover-step.js'
import { followStep } from './follow-step.js'
import type { RunContext } from './run-context.js'
import { schemaStep } from './schema-step.js'
import { verifyStep } from './verify-step.js'

export interface Step {
  readonly name: string
  /** Of the run while the step works. */
  readonly state: RunState
  /** Named places inside, besides its begin and its end. */
  readonly points: readonly string[]
  run(context: RunContext): Promise<void>
}

export const steps: readonly Step[] = [
  { name: 'schema', state: 'schema', points: ['dumped', 'registered'], run: schemaStep },
  {
    name: 'copy',
    state: 'copying',
    points: ['publications', 'slots', 'parts', 'rows', 'half', 'part', 'key'],
    run: copyStep,
  },
  {
    name: 'follow',
    state: 'following',
    points: ['started', 'batch', 'half', 'caught-up'],
    run: followStep,
  },
  { name: 'verify', state: 'verifying', points: [], run: verifyStep },
  { name: 'cutover', state: 'ready', points: cutoverPoints, run: cutoverStep },
  { name: 'finish', state: 'cut_over', points: [], run: finishStep },
]

/** Places that only a move between sides with shards in common comes to. */
export const bucketPoints: readonly string[] = settlingPoints.map((point) => `cutover:${point}`)

/** Every place where a run can be ended by a test: `step:before`, `step:point`, `step:after`. */
export const faultPoints: readonly string[] = steps.flatMap(({ name, points }) =>
  ['before', ...points, 'after'].map((point) => `${name}:${point}`),
)
