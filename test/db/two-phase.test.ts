import { beforeAll, describe, expect, it } from 'vitest'
import { deferred } from '../../src/base/deferred.js'
import type { TwoPhaseStep } from '../../src/executor/two-phase.js'
import { readTwoPhaseIdentity } from '../../src/executor/two-phase-identity.js'
import { at, diesAt, SHARDS, TwoPhaseRig } from '../support/two-phase-rig.js'
import { usePostgres } from '../support/use-postgres.js'

const postgres = usePostgres({ count: 3, own: true })
let rig: TwoPhaseRig
beforeAll(async () => {
  rig = new TwoPhaseRig(postgres())
  await rig.prepare()
})

const all = [...SHARDS]
const settledSoon = () => expect.poll(() => rig.leftovers(), { timeout: 10_000 }).toEqual([])

describe('commit over shards', () => {
  it('D6, D144, D148: commits on all and leaves nothing behind', async () => {
    const { tx, parts } = await rig.begin()
    expect(await rig.commit(parts)).toEqual({ pending: [] })
    expect(await rig.landed(tx)).toEqual(all)
    await settledSoon()
    expect(parts.map(({ server }) => server.isIdle)).toEqual([true, true, true])
    for (const { server } of parts) server.close()
  })

  it('D146: a refusal of one shard rolls back all, with that shard’s own error', async () => {
    const { tx, parts } = await rig.begin()
    await parts[1]?.server.query(`INSERT INTO entry VALUES (${tx}, 1)`)
    await expect(rig.commit(parts)).rejects.toMatchObject({
      sqlstate: '23505',
      message: expect.stringContaining('duplicate key'),
    })
    expect(await rig.landed(tx)).toEqual([])
    expect(await rig.leftovers()).toEqual([])
    expect(parts.map(({ server }) => server.isIdle)).toEqual([true, true, true])
    for (const { server } of parts) server.close()
  })

  it('a transaction that has failed on one shard commits on none', async () => {
    for (const failing of all) {
      const { tx, parts } = await rig.begin()
      await parts[failing]?.server.query('SELECT 1/0').catch(() => undefined)
      await expect(rig.commit(parts)).rejects.toMatchObject({ sqlstate: '25P02' })
      expect(await rig.landed(tx)).toEqual([])
      for (const { server } of parts) server.close()
    }
    expect(await rig.leftovers()).toEqual([])
  })

  it('lets the shard decide that cannot be prepared, and refuses two', async () => {
    const temp = 'CREATE TEMP TABLE scratch (a int) ON COMMIT DROP'
    const one = await rig.begin()
    await one.parts[2]?.server.query(temp)
    await rig.commit(one.parts)
    expect(await rig.landed(one.tx)).toEqual(all)
    const told = await rig.begin()
    await told.parts[1]?.server.query('NOTIFY somebody')
    const hinted = told.parts.map((part) => ({ ...part, cannotPrepare: part.shard === 1 }))
    await rig.commit(hinted)
    expect(await rig.landed(told.tx)).toEqual(all)
    const two = await rig.begin()
    await two.parts[0]?.server.query(temp)
    await two.parts[2]?.server.query(temp)
    await expect(rig.commit(two.parts)).rejects.toMatchObject({
      code: 'TWO_PHASE_UNPREPARABLE',
      sqlstate: '0A000',
    })
    expect(await rig.landed(two.tx)).toEqual([])
    await settledSoon()
    for (const { server } of [...one.parts, ...told.parts, ...two.parts]) server.close()
  })

  it('works after SET LOCAL ROLE, and flushes the decision under synchronous_commit = off', async () => {
    const role = `clerk_${postgres().database}`
    for (const shard of all) {
      await postgres().query(`CREATE ROLE ${role}; GRANT ALL ON entry TO ${role}`, [], shard)
    }
    const { tx, parts } = await rig.begin()
    for (const { server } of parts) {
      await server.query(`SET LOCAL ROLE ${role}; SET LOCAL synchronous_commit = off`)
    }
    const seen: string[] = []
    await rig.commit(parts, {
      onStep: async (step) => {
        if (step !== 'readied') return
        const [shown] = (await parts[0]?.server.query('SHOW synchronous_commit')) ?? []
        seen.push(shown?.rows[0]?.[0] ?? '')
      },
    })
    expect(seen).toEqual(['on'])
    expect(await rig.landed(tx)).toEqual(all)
    for (const { server } of parts) server.close()
    for (const shard of all) {
      await postgres().query(`DROP OWNED BY ${role}; DROP ROLE ${role}`, [], shard)
    }
  })

  it('D147: says which shard is still pending when the second phase is stuck', async () => {
    const { tx, parts } = await rig.begin()
    const outcome = await rig.commit(parts, {
      waitMs: 200,
      withServer: (shard, work) =>
        shard === 1 ? Promise.reject(new Error('gone')) : rig.withServer(shard, work),
      ...at('decided', () => parts[1]?.server.destroy()),
    })
    expect(outcome).toEqual({ pending: [1] })
    expect(await rig.landed(tx)).toEqual([0, 2])
    const [report] = await rig.recoverAll()
    expect(report?.committed).toBe(1)
    expect(await rig.landed(tx)).toEqual(all)
    for (const { server } of parts) server.close()
  })

  it('asks the deciding shard when its answer was lost', async () => {
    const committed = await rig.begin()
    // The decision is made on the server, but its answer does not reach us.
    const first = committed.parts[0]!
    const lossy = {
      shard: 0,
      server: {
        query: async (sql: string) => {
          const answer = await first.server.query(sql)
          if (sql.includes('decide')) throw new Error('connection lost')
          return answer
        },
      },
    }
    await rig.commit([lossy, ...committed.parts.slice(1)])
    expect(await rig.landed(committed.tx)).toEqual(all)

    const undone = await rig.begin()
    const ended = rig.commit(
      undone.parts,
      at('prepared', () => undone.parts[0]?.server.destroy()),
    )
    await expect(ended).rejects.toMatchObject({ code: 'TWO_PHASE_ROLLED_BACK', retry: 'safe' })
    expect(await rig.landed(undone.tx)).toEqual([])

    const unknown = await rig.begin()
    const lost = rig.commit(unknown.parts, {
      waitMs: 100,
      withServer: () => Promise.reject(new Error('gone')),
      ...at('prepared', () => unknown.parts[0]?.server.destroy()),
    })
    await expect(lost).rejects.toMatchObject({ code: 'TWO_PHASE_UNKNOWN', sqlstate: '40003' })
    await rig.recoverAll()
    expect(await rig.landed(unknown.tx)).toEqual([])
    for (const { server } of [...committed.parts, ...undone.parts, ...unknown.parts]) server.close()
  })
})

describe('recovery', () => {
  const steps: [TwoPhaseStep, number[]][] = [
    ['begun', []],
    ['readied', []],
    ['prepared', []],
    ['decided', all],
    ['committed', all],
  ]

  for (const [step, expected] of steps) {
    it(`a proxy that dies when "${step}" leaves ${expected.length === 0 ? 'nothing' : 'all'}`, async () => {
      const { tx, parts } = await rig.begin()
      const died = deferred<void>()
      void rig.commit(parts, diesAt(step, parts, died.resolve))
      await died.promise
      await rig.recoverAll()
      expect(await rig.landed(tx)).toEqual(expected)
    })
  }

  it('leaves young transactions alone, and those of other clusters', async () => {
    const { tx, parts } = await rig.begin()
    const died = deferred<void>()
    void rig.commit(parts, diesAt('prepared', parts, died.resolve))
    await died.promise
    const foreign = await rig.open(0)
    await foreign.query(
      `BEGIN; INSERT INTO entry VALUES (-1, 0); PREPARE TRANSACTION 'pgshard_00000000_1_${'0'.repeat(32)}_2'`,
    )
    const report = await rig.recover(60_000)
    expect(report).toMatchObject({ committed: 0, rolledBack: 0, unreachable: [] })
    expect(report.left.map((one) => one.reason)).toEqual(
      new Array(2).fill('it is younger than the grace time'),
    )
    const second = await rig.recover()
    expect(second).toMatchObject({ rolledBack: 2, left: [] })
    expect(await rig.landed(tx)).toEqual([])
    const [row] = await postgres().query('SELECT count(*)::int AS n FROM pg_prepared_xacts')
    expect(row).toEqual({ n: 1 })
    await foreign.query(`ROLLBACK PREPARED 'pgshard_00000000_1_${'0'.repeat(32)}_2'`)
    foreign.close()
    await rig.recoverAll()
  })

  it('that comes before the decision makes the late decider fail with 40001', async () => {
    const { tx, parts } = await rig.begin()
    let duringReport: unknown
    const late = rig.commit(parts, {
      onStep: async (step) => {
        if (step === 'prepared') duringReport = await rig.recover()
      },
    })
    await expect(late).rejects.toMatchObject({
      sqlstate: '40001',
      message: expect.stringContaining('already rolled the transaction back'),
    })
    // The abort row stays for as long as the decider's transaction is open.
    expect(duringReport).toMatchObject({ rolledBack: 2, abortsRemoved: 0 })
    expect(await rig.landed(tx)).toEqual([])
    await rig.recoverAll()
    for (const { server } of parts) server.close()
  })

  it('that runs beside the second phase does no harm', async () => {
    const { tx, parts } = await rig.begin()
    const outcome = await rig.commit(parts, {
      onStep: async (step) => {
        if (step === 'decided') await rig.recover()
      },
    })
    expect(outcome).toEqual({ pending: [] })
    expect(await rig.landed(tx)).toEqual(all)
    await settledSoon()
    for (const { server } of parts) server.close()
  })

  it('many recoveries at once end the same', async () => {
    const dead = await Promise.all(
      (['prepared', 'decided', 'prepared', 'decided'] as const).map(async (step) => {
        const { tx, parts } = await rig.begin()
        const died = deferred<void>()
        void rig.commit(parts, diesAt(step, parts, died.resolve))
        await died.promise
        return { tx, expected: step === 'decided' ? all : [] }
      }),
    )
    await Promise.all([rig.recover(), rig.recover(), rig.recover(), rig.recover()])
    await rig.recoverAll()
    for (const { tx, expected } of dead) expect(await rig.landed(tx)).toEqual(expected)
  })

  it('works for an ordinary user, and says what another user must finish', async () => {
    const role = `teller_${postgres().database}`
    for (const shard of all) await postgres().query(`CREATE ROLE ${role} LOGIN`, [], shard)
    const mine = new TwoPhaseRig(postgres(), role)
    await mine.prepare()
    const { parts } = await mine.begin()
    const tx = 1_000_000
    for (const { shard, server } of parts) {
      await server.query(`ROLLBACK; BEGIN; INSERT INTO entry VALUES (${tx}, ${shard})`)
    }
    const died = deferred<void>()
    void mine.commit(parts, diesAt('decided', parts, died.resolve))
    await died.promise
    const theirs = await rig.begin()
    const alsoDied = deferred<void>()
    void rig.commit(theirs.parts, diesAt('decided', theirs.parts, alsoDied.resolve))
    await alsoDied.promise
    const report = await mine.recover()
    expect(report.committed).toBe(2)
    expect(report.left.map((one) => one.reason)).toEqual(
      new Array(2).fill('it belongs to another user'),
    )
    expect(await rig.landed(tx)).toEqual(all)
    await rig.recoverAll()
    for (const shard of all) {
      await postgres().query(`DROP OWNED BY ${role}; DROP ROLE ${role}`, [], shard)
    }
  })
})

describe('readiness', () => {
  it('is refused with the reason', async () => {
    const read = () => readTwoPhaseIdentity('bank', 3, rig.withServer)
    expect((await read()).shardIds).toEqual([1, 2, 3])
    const role = `guest_${postgres().database}`
    await postgres().query(`CREATE ROLE ${role} LOGIN`)
    const guest = new TwoPhaseRig(postgres(), role)
    await expect(readTwoPhaseIdentity('bank', 1, guest.withServer)).rejects.toThrow(
      'shard 0 does not let this user recover',
    )
    await postgres().query(`DROP ROLE ${role}`)
    await postgres().query('ALTER SCHEMA pgshard RENAME TO hidden', [], 1)
    await expect(read()).rejects.toMatchObject({
      code: 'TWO_PHASE_NOT_READY',
      message: expect.stringContaining('shard 1 has no schema pgshard'),
    })
    await postgres().query('ALTER SCHEMA hidden RENAME TO pgshard', [], 1)
  })
})
