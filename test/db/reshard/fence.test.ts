/** The fence on real tables: old snapshots, partitions, the one login that passes, locks that are held. */
import pg from 'pg'
import { expect, test } from 'vitest'
import { systemClock } from '../../../src/base/clock.js'
import type { HostTarget } from '../../../src/pg/host-client.js'
import {
  closeSql,
  cutoverStanding,
  decideSql,
  prepareEpochs,
  readEpochOf,
  truthOf,
} from '../../../src/reshard/cutover/epoch-store.js'
import {
  lockBlockers,
  lockSource,
  openFenceSession,
  prepareFence,
} from '../../../src/reshard/cutover/fence.js'
import { reopenSide } from '../../../src/reshard/cutover/give-back.js'
import { type MovePlan, planMove } from '../../../src/reshard/move-table.js'
import { readSourceTables } from '../../../src/reshard/preflight/source-table.js'
import { type ReshardSide, withShard } from '../../../src/reshard/side.js'
import { connect } from '../../support/moving-shop.js'
import { usePostgres } from '../../support/use-postgres.js'
import { makeSide } from './move-rig.js'
import { bigSharding, on } from './verify-rig.js'

const postgres = usePostgres({ version: 15 })
const PASS = 'pgshard_fence_test'

const side = (name: string): Promise<ReshardSide> => makeSide(postgres(), name, 1, bigSharding(1))

const first = (of: ReshardSide): HostTarget => of.shards[0] as HostTarget

async function made(): Promise<{ source: ReshardSide; target: ReshardSide; plan: MovePlan }> {
  const source = await side('a')
  const target = await side('b')
  await on(
    first(source),
    `CREATE TABLE big (tenant bigint PRIMARY KEY, v text);
     CREATE TABLE parted (tenant bigint, v text, PRIMARY KEY (tenant)) PARTITION BY HASH (tenant);
     CREATE TABLE part0 PARTITION OF parted FOR VALUES WITH (MODULUS 1, REMAINDER 0);
     INSERT INTO big VALUES (1, 'x'); INSERT INTO parted VALUES (1, 'x');`,
  )
  const tables = await withShard(first(source), readSourceTables)
  const plan = planMove(source, target, tables)
  await prepareEpochs(source, target, 'r1')
  await prepareFence(source, plan, PASS, systemClock)
  return { source, target, plan }
}

async function raise(source: ReshardSide, target: ReshardSide, plan: MovePlan): Promise<void> {
  const session = await openFenceSession(source, 0, plan)
  const locked = await lockSource(source, 0, session, {
    ...{ plan, clock: systemClock, budgetMs: 20_000 },
    deadlineMs: systemClock.monotonicMs() + 20_000,
    closeSql: closeSql('r1', await truthOf(target)),
  })
  await locked.fence()
  await session.client.end()
}

const fenced = { code: '25006', constraint: 'pgshard_fence' }

test('O3: a fence that is made is not felt; raised it refuses every writer, older snapshots too', async () => {
  const { source, target, plan } = await made()
  const client = await connect(first(source))
  await client.query(`UPDATE big SET v = 'y'`)
  await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ')
  await client.query('SELECT count(*) FROM parted')
  await raise(source, target, plan)
  await expect(client.query(`UPDATE big SET v = 'late'`)).rejects.toMatchObject(fenced)
  await client.query('ROLLBACK')
  for (const sql of [
    `INSERT INTO big VALUES (2, 'z')`,
    'DELETE FROM big WHERE false',
    'TRUNCATE big',
    `INSERT INTO parted VALUES (2, 'z')`,
    `UPDATE part0 SET v = 'z'`,
    `SET session_replication_role = replica; INSERT INTO big VALUES (2, 'z')`,
  ]) {
    await expect(client.query(sql), sql).rejects.toMatchObject(fenced)
  }
  await client.end()
  expect(await readEpochOf(source)).toMatchObject({ active: false, fenced: true, epoch: 0 })
  expect(await cutoverStanding(source, target)).toBe('fenced')
})

test('O3: only the login of the way back passes; lowered, everyone does', async () => {
  const { source, target, plan } = await made()
  await raise(source, target, plan)
  await on(
    first(source),
    `DROP ROLE IF EXISTS ${PASS}; CREATE ROLE ${PASS} LOGIN; GRANT ALL ON big TO ${PASS};`,
  )
  const { host, port, database } = first(source)
  const back = new pg.Client({ host, port, database, user: PASS })
  await back.connect()
  await back.query(`INSERT INTO big VALUES (3, 'back')`)
  await back.end()
  // Whoever only takes the role stays who he is.
  const client = await connect(first(source))
  await client.query(`SET ROLE ${PASS}`)
  await expect(client.query(`INSERT INTO big VALUES (4, 'x')`)).rejects.toMatchObject(fenced)
  await client.query('RESET ROLE')
  await reopenSide(source)
  await client.query(`INSERT INTO big VALUES (5, 'x')`)
  await client.query(`DROP OWNED BY ${PASS}`)
  await client.query(`DROP ROLE ${PASS}`)
  await client.end()
  expect(await cutoverStanding(source, target)).toBe('open')
  expect(await readEpochOf(source)).toMatchObject({ active: true, fenced: false })
})

test('O3: who holds the tables is named, prepared transactions too', async () => {
  const { source, target, plan } = await made()
  const client = await connect(first(source))
  await client.query('BEGIN')
  await client.query('LOCK TABLE big IN SHARE UPDATE EXCLUSIVE MODE')
  const holders = await withShard(first(source), (other) => lockBlockers(other, plan))
  expect(holders.join()).toContain('vacuum, index build or the like')
  const session = await openFenceSession(source, 0, plan)
  const late = lockSource(source, 0, session, {
    ...{ plan, clock: systemClock, budgetMs: 200, closeSql: '' },
    deadlineMs: systemClock.monotonicMs() + 200,
  })
  await expect(late).rejects.toMatchObject({ code: 'RESHARD_LOCK' })
  await session.client.end()
  await client.query('ROLLBACK')
  await client.end()
  expect(await withShard(first(source), (other) => lockBlockers(other, plan))).toEqual([])
  expect(await cutoverStanding(source, target)).toBe('open')
})

test('O3: the commit of a higher epoch decides, and a side that is served is no target', async () => {
  const { source, target, plan } = await made()
  await raise(source, target, plan)
  await on(first(target), decideSql(1, 'r1', undefined))
  expect(await cutoverStanding(source, target)).toBe('switched')
  // An older decision changes nothing.
  await on(first(target), decideSql(1, 'r1', undefined))
  expect(await readEpochOf(target)).toMatchObject({ active: true, epoch: 1 })
  await expect(prepareEpochs(source, target, 'r2')).rejects.toMatchObject({
    code: 'RESHARD_TARGET_ACTIVE',
  })
})
