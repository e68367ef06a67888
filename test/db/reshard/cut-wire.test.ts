/** The wire cut at every kind of message of copy and follow, in both directions, on the side of the source and of the targets. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import type { ConfigSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { type RunOptions, resumeReshard, runReshard } from '../../../src/reshard/reshard.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { startCuttingWire } from '../../support/cutting-wire.js'
import { connect } from '../../support/moving-shop.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { makeSide } from './move-rig.js'

const settings = { max_wal_senders: '60', max_replication_slots: '60' }
const postgres = usePostgres({ version: 15, settings })

test.each(bySize(['target'] as const, ['target', 'source'] as const))(
  'the wire to the %s is cut at every kind of message: resume goes on',
  async (which) => {
    const [server] = postgres().servers
    const wire = await startCuttingWire(server!.host, server!.port)
    const side = async (name: string, count: number): Promise<ReshardSide> => {
      const made = await makeSide(postgres(), name, count)
      const port = name === which ? wire.port : server!.port
      return { ...made, shards: made.shards.map((shard) => ({ ...shard, port })) }
    }
    const source = await side('source', 1)
    const target = await side('target', 2)
    const place = { ...(source.shards[0] as HostTarget), port: server!.port }
    const client = await connect(place)
    await client.query(`CREATE TABLE orders (tenant bigint, id int, v text, PRIMARY KEY (tenant, id));
      INSERT INTO orders SELECT 1 + t % 50, t, repeat('x', 300) FROM generate_series(1, 3000) t`)
    let round = 0
    const armed = /^(copy|follow):/
    const options: RunOptions = {
      source,
      target,
      gate: noGate,
      config: {} as ConfigSwitch,
      clock: systemClock,
      log: silentLog,
      listener: { step: () => undefined },
      jobs: 2,
      budgetMs: 10_000,
      verifyHoldMs: 5_000,
      stopAfter: 'verify',
      partBytes: 200_000,
      atPoint: async (point) => {
        if (armed.test(point)) wire.arm()
      },
    }
    let begin = runReshard
    let isReady = false
    for (let tries = 0; !isReady && tries < 80; tries++) {
      const before = wire.cut.size
      await begin(options).then(
        (report) => {
          isReady = wire.cut.size === before
          expect(report.verify?.same).toBe(true)
        },
        (error: Error) => {
          // Only what was cut may fail.
          if (wire.cut.size === before) throw error
        },
      )
      begin = resumeReshard
      round++
      await client.query(`UPDATE orders SET v = 'round ${round}' WHERE id % 97 = ${round % 97}`)
    }
    expect(isReady).toBe(true)
    const last = await resumeReshard({ ...options, atPoint: async () => undefined })
    expect(last.verify?.same).toBe(true)
    expect([...wire.cut].sort()).toEqual(
      expect.arrayContaining(['client Q', 'server C', 'server Z']),
    )
    if (which === 'target') expect(wire.cut).toContain('client d')
    else expect(wire.cut).toContain('server d/w')
    await client.end()
    await wire.close()
  },
  180_000,
)
