/** Where serve looks for HA groups: only while its configuration has some that are followed. */
import { describe, expect, test } from 'vitest'
import { silentLog } from '../../../../src/base/log.js'
import type { LoadedConfig } from '../../../../src/config/loaded-config.js'
import { HaFollowing } from '../../../../src/proxy/topology/ha-following.js'
import { FakeClock } from '../../../support/fake-clock.js'

const without = { databases: [] } as unknown as LoadedConfig
/** Its state database cannot be reached, which changes nothing but is looked for. */
const withGroup = {
  databases: [],
  ha: {
    state: 'host=127.0.0.1 port=1 user=hauser dbname=x',
    user: 'hauser',
    connectTimeoutMs: 1000,
    groups: [{ id: 1, name: 'one', database: 'app', shard: 0 }],
  },
} as unknown as LoadedConfig

function following(config: () => LoadedConfig) {
  const clock = new FakeClock()
  const follow = async () => undefined
  return { clock, ha: new HaFollowing({ clock, log: silentLog, config, follow }) }
}

describe('following HA groups', () => {
  test('without a group nothing is looked at, and no timer runs', async () => {
    const { clock, ha } = following(() => without)
    expect(await ha.asGroupsSay(without)).toBe(without)
    ha.start()
    expect(clock.pendingTimers).toBe(0)
  })

  test('a group that a reload brings is looked at from then on, one that it takes no more', async () => {
    let config = without
    const { clock, ha } = following(() => config)
    ha.start()
    await ha.asGroupsSay(withGroup)
    config = withGroup
    expect(clock.pendingTimers).toBe(1)
    await ha.asGroupsSay(withGroup)
    expect(clock.pendingTimers).toBe(1)
    config = without
    await clock.advance(1000)
    expect(clock.pendingTimers).toBe(0)
    ha.stop()
    await ha.asGroupsSay(withGroup)
    expect(clock.pendingTimers).toBe(0)
  })
})
