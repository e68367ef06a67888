/**
 * The recorded cases of logical replication, written again on a real source of the oldest and the newest version while a
 * move follows it to three shards: what is there in the end is what was recorded, each row where its key belongs.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import type { ConfigSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { runReshard } from '../../../src/reshard/reshard.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import type { ShardingConfig } from '../../../src/sharding/sharded-table.js'
import { connect, shardOf, shopSharding } from '../../support/moving-shop.js'
import type { TestPostgres } from '../../support/postgres.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { makeSide } from './move-rig.js'

interface Recorded {
  readonly id: string
  readonly about: string
  readonly setup: string
  readonly dml: readonly string[]
  readonly final_state: { readonly sql: string; readonly rows: readonly (string | null)[][] }
}

const directory = new URL('../../../fixtures/wal/', import.meta.url)
const cases = readdirSync(directory)
  .filter((name) => name.endsWith('.json'))
  .map((name) => JSON.parse(readFileSync(new URL(name, directory), 'utf8')) as Recorded)

const settings = { max_wal_senders: '60', max_replication_slots: '60' }

/** Every table of the recordings has its key in a column of one of these names. */
function sharding(shardCount: number): ShardingConfig {
  const [{ placement, keyType }] = shopSharding(shardCount).tables as [
    ShardingConfig['tables'][number],
  ]
  const tables = ['id', 'Id'].map((column) => ({ column, keyType, placement }))
  return { shardCount, tables, referenceTables: [], schemas: [], otherTables: 'reference' }
}

const side = (name: string, count: number, postgres: TestPostgres): Promise<ReshardSide> =>
  makeSide(postgres, name, count, sharding(count))

async function rowsOf(target: HostTarget, sql: string): Promise<(string | null)[][]> {
  const client = await connect(target)
  try {
    const types = { getTypeParser: () => (text: string) => text }
    return (await client.query({ text: sql, rowMode: 'array', types: types as never })).rows
  } finally {
    await client.end()
  }
}

describe.each(bySize([15] as const, [15, 18] as const))('a source of version %i', (version) => {
  const postgres = usePostgres({ version, settings })

  test.each(cases)(
    'O4: $id: $about',
    async ({ setup, dml, final_state: wanted }) => {
      const [source, target] = [await side('a', 1, postgres()), await side('b', 3, postgres())]
      const client = await connect(source.shards[0] as HostTarget)
      await client.query(setup)
      const report = await runReshard({
        ...{ source, target, gate: noGate, config: {} as ConfigSwitch, clock: systemClock },
        ...{ log: silentLog, listener: { step: () => undefined }, jobs: 1, budgetMs: 10_000 },
        ...{ verifyHoldMs: 5000, stopAfter: 'verify' },
        // Nothing of it is copied: all of it comes by the stream.
        atPoint: async (point) => {
          if (point === 'copy:after') for (const sql of dml) await client.query(sql)
        },
      })
      await client.end()
      expect(report).toMatchObject({ state: 'ready', rowsCopied: 0, verify: { same: true } })
      expect(report.changesApplied).toBeGreaterThan(0)
      const found = await Promise.all(target.shards.map((shard) => rowsOf(shard, wanted.sql)))
      const inOrder = (rows: readonly (string | null)[][]) =>
        rows.map((row) => JSON.stringify(row)).sort()
      expect(inOrder(found.flat())).toEqual(inOrder(wanted.rows))
      for (const [shard, rows] of found.entries()) {
        for (const [key] of rows) expect(shardOf(BigInt(key ?? 0), target.sharding)).toBe(shard)
      }
    },
    90_000,
  )
})
