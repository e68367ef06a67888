/** How sources are copied: side by side, also where all shards stand on one server, and what is left behind the rows. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import { adminQuery } from '../../../src/pg/admin-query.js'
import { LSN_ZERO } from '../../../src/replication/lsn.js'
import { copyParts, type PartReader } from '../../../src/reshard/copy/copy-parts.js'
import type { ConfigSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { ensureTargetTables } from '../../../src/reshard/journal/journal.js'
import type { MovePlan, MoveTable } from '../../../src/reshard/move-table.js'
import { type RunOptions, runReshard } from '../../../src/reshard/reshard.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { connect } from '../../support/moving-shop.js'
import { waitFor } from '../../support/wait-for.js'
import { at, everywhere, on, useSides } from './move-rig.js'

const { side } = useSides()

const copyOf = (source: ReshardSide, target: ReshardSide): RunOptions => ({
  ...{ source, target, gate: noGate, config: {} as ConfigSwitch, clock: systemClock },
  ...{ log: silentLog, listener: { step: () => undefined }, jobs: 1, budgetMs: 10_000 },
  ...{ verifyHoldMs: 5000, stopAfter: 'copy' },
})

const tables = `CREATE TABLE orders (tenant bigint, id bigint, v text, PRIMARY KEY (tenant, id));
  CREATE TABLE country (code text PRIMARY KEY) PARTITION BY LIST (code);
  CREATE TABLE country_de PARTITION OF country FOR VALUES IN ('de')`

test('O1, O4: no source is read before all have their snapshots: a slot would wait for the rows of another', async () => {
  const [source, target] = [await side('a', 2), await side('b', 1)]
  await everywhere(
    source,
    tables,
    `INSERT INTO orders SELECT i, i, 'x' FROM generate_series(1, 20) i`,
  )
  await everywhere(target, tables)
  for (const shard of target.shards) {
    const client = await connect(shard)
    await ensureTargetTables(client)
    await client.end()
  }
  const to = { kind: 'unsharded', shard: 0 }
  const table = {
    ...{
      schema: 'public',
      name: 'orders',
      sqlName: 'orders',
      targetName: 'orders',
      identity: [],
      sourceShards: [0, 1],
    },
    ...{ columns: [{ name: 'tenant' }, { name: 'id' }, { name: 'v' }], from: to, to, bytes: 0 },
  } as unknown as MoveTable
  await on(target.shards[0]!, 'ALTER TABLE orders DROP CONSTRAINT orders_pkey')
  let ready = 0
  const seenReady: number[] = []
  const open = `SELECT count(*)::int AS n FROM pg_stat_activity WHERE application_name = 'pgshard reshard'
    AND datname = ANY ('{${[...source.shards, ...target.shards].map(({ database }) => database)}}')`
  const reader = (shard: number): PartReader => ({
    target: source.shards[shard]!,
    snapshots: {
      prepare: async () => {
        // The second takes until both readers have all their connections and could begin.
        if (shard === 1)
          await waitFor(async () => (await on<{ n: number }>(source.shards[0]!, open))[0]?.n === 4)
        ready++
      },
      enter: async (client) => {
        seenReady.push(ready)
        await adminQuery(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ')
        return { snapshot: 'one', watermark: LSN_ZERO }
      },
    },
  })
  await copyParts({
    ...{ run: 'r', jobs: 1, binary: true, replicaRole: false, target, present: [new Set()] },
    plan: { tables: [table], sourceCount: 2, targetCount: 1, placeCount: 1 } as unknown as MovePlan,
    parts: [0, 1].map((shard) => ({ table, source: shard, part: 0, low: null, high: null })),
    readers: [[reader(0)], [reader(1)]],
    onPart: () => undefined,
  })
  expect(seenReady).toEqual([2, 2])
  expect(await on(target.shards[0]!, 'SELECT count(*)::int AS n FROM orders')).toEqual([{ n: 40 }])
}, 90_000)

test('O4: what was copied is analysed, partitions and their parents too, and no catalogue', async () => {
  const [source, target] = [await side('a', 1), await side('b', 2)]
  await everywhere(source, tables, `INSERT INTO country VALUES ('de')`)
  for (let tenant = 1; tenant <= 30; tenant++) {
    await at(source, tenant, `INSERT INTO orders VALUES (${tenant}, 1, 'x')`)
  }
  await runReshard(copyOf(source, target))
  const analysed = await everywhere(
    target,
    `SELECT DISTINCT starelid::regclass::text AS name FROM pg_statistic WHERE starelid >= 16384 ORDER BY 1`,
  )
  const names = ['country', 'country_de', 'orders'].map((name) => ({ name }))
  expect(analysed).toEqual([names, names])
}, 90_000)
