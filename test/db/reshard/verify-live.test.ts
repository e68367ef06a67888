import { mkdtemp, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, inject, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import { configSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { continueReshard, type RunOptions } from '../../../src/reshard/reshard.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { connect, shardOf } from '../../support/moving-shop.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { bigSharding, bigSide, on } from './verify-rig.js'

const settings = { max_wal_senders: '30', max_replication_slots: '30' }
const old = usePostgres({ version: 15, settings })
const young = usePostgres({ version: 18, settings })
const ROWS = bySize(5_000, 1_000_000)
const WRITERS = bySize(10, 50)

/** Writers on the source shards, each on rows of its own, until they are stopped. */
function startWriters(source: ReshardSide) {
  let isStopped = false
  let writes = 0
  const write = async (writer: number): Promise<void> => {
    const tenant = writer * 31
    const client = await connect(source.shards[shardOf(tenant, source.sharding)] as HostTarget)
    for (let i = 0; !isStopped; i++) {
      const id = 10_000_000 + writer * 100_000 + i
      await client.query(`INSERT INTO big (tenant, id, note) VALUES ($1, $2, 'new')`, [tenant, id])
      await client.query(`UPDATE big SET note = 'ü' || id WHERE tenant = $1 AND id = $2`, [
        tenant,
        id,
      ])
      if (i % 3 === 0)
        await client.query('DELETE FROM big WHERE tenant = $1 AND id = $2', [tenant, id])
      writes++
    }
    await client.end()
  }
  const loops = Array.from({ length: WRITERS }, (_, writer) => write(writer))
  return {
    writes: () => writes,
    stop: async () => {
      isStopped = true
      await Promise.all(loops)
    },
  }
}

async function emptySide(
  name: string,
  count: number,
  server: ReturnType<typeof old>,
): Promise<ReshardSide> {
  const shards: HostTarget[] = []
  for (let shard = 0; shard < count; shard++) {
    const { host, port } = server.servers[0]!
    shards.push({ host, port, user: server.user, database: await server.createDatabase() })
  }
  return { name, shards, sharding: bigSharding(count) }
}

test.each(
  bySize(
    [['15 → 18', old, young] as const],
    [['15 → 18', old, young] as const, ['18 → 18', young, young] as const],
  ),
)(
  'verify under writers finds what differs and nothing else, %s',
  async (_, from, to) => {
    const source = await bigSide(from(), 'a', { shards: 2, rows: ROWS })
    for (const shard of source.shards) await on(shard, 'DROP TABLE pg_key')
    const target = await emptySide('b', 3, to())
    const path = join(await mkdtemp(join(inject('runDirectory'), 'verify-')), 'pgdog.toml')
    await writeFile(
      path,
      '[[databases]]\nname = "a"\nhost = "h1"\n[[databases]]\nname = "b"\nhost = "h2"\n',
    )
    const given: RunOptions = {
      source,
      target,
      gate: noGate,
      config: configSwitch(path, 'a', 'b'),
      clock: systemClock,
      log: silentLog,
      listener: { step: () => undefined },
      jobs: 2,
      budgetMs: 10_000,
      verifyHoldMs: 5_000,
      endPinned: false,
      wayBack: false,
      stopAfter: 'verify',
    } as RunOptions
    const writers = startWriters(source)
    try {
      for (let run = 0; run < bySize(1, 10); run++) {
        const before = writers.writes()
        const report = await continueReshard(given)
        expect(report.state).toBe('ready')
        expect(report.verify?.slices[0]?.lsns).toHaveLength(2)
        expect(writers.writes()).toBeGreaterThan(before)
      }
      const at = (tenant: number) => target.shards[shardOf(tenant, target.sharding)] as HostTarget
      const key = (i: number) => `tenant = ${i % 5000} AND id = ${i}`
      await on(
        at(1234),
        `UPDATE big SET raw = set_byte(raw, 3, get_byte(raw, 3) # 1) WHERE ${key(1234)}`,
      )
      await on(at(1235), `DELETE FROM big WHERE ${key(1235)}`)
      await on(at(77), `INSERT INTO big (tenant, id) VALUES (77, -1)`)
      await expect(continueReshard(given)).rejects.toMatchObject({
        code: 'RESHARD_DIFFERENT',
        exitCode: 7,
        detail: expect.stringMatching(
          /^public\.big: \d+ rows on the source, \d+ on the target\n( {2}(\(1234,1234\) differs|\(1235,1235\) missing on target|\(77,-1\) not on source)\n?){3}$/,
        ),
      })
    } finally {
      await writers.stop()
    }
  },
  400_000,
)
