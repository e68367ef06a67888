/** kill −9 in follow and verify: see kill-rig.ts. */
import { bySize } from '../../support/test-size.js'
import { pointsOf, testKills } from './kill-rig.js'

testKills(bySize(['follow:half'], pointsOf('follow')))
