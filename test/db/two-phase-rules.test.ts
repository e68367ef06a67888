/** Rules of two-phase commit (hard-parts §3.5), each with a test that fails without it; the course of commits is in two-phase.test.ts. */
import { beforeAll, describe, expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import { recoverPrepared } from '../../src/executor/two-phase-recovery.js'
import { at, diesAt, SHARDS, TwoPhaseRig } from '../support/two-phase-rig.js'
import { usePostgres } from '../support/use-postgres.js'

const postgres = usePostgres({ count: 3, own: true })
let rig: TwoPhaseRig
beforeAll(async () => {
  rig = new TwoPhaseRig(postgres())
  await rig.prepare()
})

const all = [...SHARDS]

/** A commit whose process dies at `step`. */
const dieAt = async (
  step: Parameters<typeof diesAt>[0],
  { parts }: Awaited<ReturnType<TwoPhaseRig['begin']>>,
): Promise<string> => {
  let key = ''
  const died = deferred<void>()
  const onKey = (one: string) => {
    key = one
  }
  void rig.commit(parts, { onKey, ...diesAt(step, parts, died.resolve) })
  await died.promise
  return key
}

describe('before the first PREPARE', () => {
  it('D146: deferred constraints are looked at on every shard, the deciding one too', async () => {
    for (const shard of all) {
      const { tx, parts } = await rig.begin()
      await parts[shard]?.server.query(`INSERT INTO entry VALUES (${tx}, ${shard})`)
      const steps: string[] = []
      const commit = rig.commit(parts, { onStep: (step) => void steps.push(step) })
      await expect(commit).rejects.toMatchObject({ sqlstate: '23505' })
      expect(steps).toEqual(['begun'])
      for (const { server } of parts) server.close()
    }
    expect(await rig.leftovers()).toEqual([])
  })

  it('the role is put back: who is no superuser can finish what it has prepared', async () => {
    const [teller, clerk] = [`teller_${postgres().database}`, `clerk_${postgres().database}`]
    for (const shard of all) {
      const sql = `CREATE ROLE ${clerk}; GRANT ALL ON entry TO ${clerk};
        CREATE ROLE ${teller} LOGIN; GRANT ${clerk} TO ${teller}`
      await postgres().query(sql, [], shard)
    }
    const mine = new TwoPhaseRig(postgres(), teller)
    await mine.prepare()
    const { tx, parts } = await mine.begin()
    for (const { server } of parts) await server.query(`SET LOCAL ROLE ${clerk}`)
    expect(await mine.commit(parts, { waitMs: 0 })).toEqual({ pending: [] })
    expect(await mine.landed(tx)).toEqual(all)
    for (const { server } of parts) server.close()
    for (const shard of all) {
      const drop = `DROP OWNED BY ${teller}, ${clerk}; DROP ROLE ${teller}, ${clerk}`
      await postgres().query(drop, [], shard)
    }
  })

  it('the deciding shard has a transaction id, so that an abort row stays while it may come', async () => {
    const { tx, parts } = await rig.begin()
    // it has written nothing
    await parts[0]?.server.query('ROLLBACK; BEGIN; SELECT 1')
    const reports: unknown[] = []
    const late = rig.commit(parts, {
      onStep: async (step) => {
        if (step !== 'prepared') return
        reports.push(await rig.recover(), await rig.recover())
      },
    })
    await expect(late).rejects.toMatchObject({ sqlstate: '40001' })
    expect(reports).toMatchObject([
      { rolledBack: 2, abortsRemoved: 0 },
      { rolledBack: 0, abortsRemoved: 0 },
    ])
    for (const { server } of parts) server.close()
    await rig.recoverAll()
    expect(await rig.landed(tx)).toEqual([])
  })
})

describe('the name of a prepared transaction', () => {
  it('D145: names cluster, deciding shard, the head of the secret’s hash and its shard, by ids that stay', async () => {
    const open = await rig.begin()
    const key = await dieAt('prepared', open)
    const gids: unknown[] = []
    for (const shard of all) {
      const rows = await postgres().query('SELECT gid FROM pg_prepared_xacts', [], shard)
      gids.push(rows.map(({ gid }) => gid))
    }
    const { clusterId, shardIds } = rig.identity
    const [deciding] = shardIds
    expect(key).toMatch(/^[0-9a-f]{32}$/)
    expect(gids).toEqual([
      [],
      [`pgshard_${clusterId}_${deciding}_${key}_${shardIds[1]}`],
      [`pgshard_${clusterId}_${deciding}_${key}_${shardIds[2]}`],
    ])
    await rig.recoverAll()
    expect(await rig.landed(open.tx)).toEqual([])
  })

  it('does not let who reads it decide', async () => {
    const open = await rig.begin()
    const key = await dieAt('prepared', open)
    const ids = rig.identity.shardIds.slice(1).join(',')
    await postgres().query(`SELECT pgshard.decide('\\x${key}'::bytea, '{${ids}}')`)
    await rig.recoverAll()
    expect(await rig.landed(open.tx)).toEqual([])
  })
})

describe('the functions in schema pgshard', () => {
  it('that run as their owner have a fixed search_path, and only deciding is for everyone', async () => {
    const rows = await postgres().query(
      `SELECT proname AS name, proconfig AS config,
         has_function_privilege('pg_monitor', oid, 'EXECUTE') AS public
       FROM pg_proc WHERE pronamespace = 'pgshard'::regnamespace AND prosecdef ORDER BY proname`,
    )
    const config = ['search_path=pg_catalog, pg_temp']
    const expected = {
      abort: false,
      decide: true,
      forget: true,
      settle: false,
      sweep_aborts: false,
    }
    expect(rows.filter(({ name }) => String(name) in expected)).toEqual(
      Object.entries(expected).map(([name, isPublic]) => ({ name, config, public: isPublic })),
    )
    for (const row of rows) expect(row['config'], String(row['name'])).toEqual(config)
  })
})

describe('a decision', () => {
  it('stays until every shard that it lists has carried it out', async () => {
    const open = await rig.begin()
    await dieAt('decided', open)
    const report = await recoverPrepared({
      identity: rig.identity,
      graceMs: 0,
      withServer: (shard, work) =>
        shard === 2 ? Promise.reject(new Error('down')) : rig.withServer(shard, work),
    })
    expect(report).toMatchObject({ committed: 1, settled: 0 })
    expect(await rig.leftovers()).toHaveLength(2)
    await rig.recoverAll()
    expect(await rig.landed(open.tx)).toEqual(all)
  })

  it('is not forgotten while a shard is pending', async () => {
    const { tx, parts } = await rig.begin()
    const outcome = await rig.commit(parts, {
      waitMs: 0,
      withServer: (shard, work) =>
        shard === 2 ? Promise.reject(new Error('down')) : rig.withServer(shard, work),
      ...at('decided', () => parts[2]?.server.destroy()),
    })
    expect(outcome).toEqual({ pending: [2] })
    const left = await rig.leftovers()
    expect(left.filter((one) => one.startsWith('0: commit'))).toHaveLength(1)
    await rig.recoverAll()
    expect(await rig.landed(tx)).toEqual(all)
    for (const { server } of parts) server.close()
  })
})
