/** kill −9 in schema and copy: see kill-rig.ts. */
import { expect, test } from 'vitest'
import { steps } from '../../../src/reshard/steps/steps.js'
import { bySize } from '../../support/test-size.js'
import { killedIn, pointsOf, testKills } from './kill-rig.js'

test('every step of a move is ended at every point by one of these files', () => {
  expect(Object.values(killedIn).flat()).toEqual(steps.map(({ name }) => name))
})

testKills(bySize(['copy:half'], pointsOf('copy')))
