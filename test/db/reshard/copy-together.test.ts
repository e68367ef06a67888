/** How sources are copied: side by side, also where all shards stand on one server, and what is left behind the rows. */
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import { silentLog } from '../../../src/base/log.js'
import type { ConfigSwitch } from '../../../src/reshard/cutover/switch-config.js'
import { noGate } from '../../../src/reshard/cutover/traffic-gate.js'
import { type RunOptions, runReshard } from '../../../src/reshard/reshard.js'
import type { ReshardSide } from '../../../src/reshard/side.js'
import { waitFor } from '../../support/wait-for.js'
import { at, everywhere, useSides } from './move-rig.js'

const { side } = useSides()

const copyOf = (source: ReshardSide, target: ReshardSide): RunOptions => ({
  ...{ source, target, gate: noGate, config: {} as ConfigSwitch, clock: systemClock },
  ...{ log: silentLog, listener: { step: () => undefined }, jobs: 1, budgetMs: 10_000 },
  ...{ verifyHoldMs: 5000, stopAfter: 'copy' },
})

const tables = `CREATE TABLE orders (tenant bigint, id bigint, v text, PRIMARY KEY (tenant, id));
  CREATE TABLE country (code text PRIMARY KEY) PARTITION BY LIST (code);
  CREATE TABLE country_de PARTITION OF country FOR VALUES IN ('de')`

test('O1, O4: sources of one server are copied side by side: none waits for the rows of another', async () => {
  const [source, target] = [await side('a', 3), await side('b', 2)]
  await everywhere(source, tables)
  for (let tenant = 1; tenant <= 30; tenant++) {
    await at(
      source,
      tenant,
      `INSERT INTO orders SELECT ${tenant}, i, 'x' FROM generate_series(1, 20) i`,
    )
  }
  let reached = 0
  // A slot is not ready before the transactions that run have ended: rows of one source, not yet committed, hold up the others.
  const atPoint = async (point: string): Promise<void> => {
    if (point !== 'copy:rows') return
    reached++
    await waitFor(() => reached >= 3, { deadlineMs: 30_000 })
  }
  const report = await runReshard({ ...copyOf(source, target), atPoint })
  expect(report.rowsCopied).toBe(600)
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
