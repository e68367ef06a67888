/** kill −9 in cutover and finish: see kill-rig.ts. */
import { bySize } from '../../support/test-size.js'
import { pointsOf, testKills } from './kill-rig.js'

testKills(bySize(['cutover:fenced'], pointsOf('switch')))
