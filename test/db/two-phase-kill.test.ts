/** kill −9 of a server's process between any two steps, and at any moment under load: all shards end the same. */
import { beforeAll, describe, expect, it } from 'vitest'
import type { TwoPhaseStep } from '../../src/executor/two-phase.js'
import { at, SHARDS, TwoPhaseRig } from '../support/two-phase-rig.js'
import { usePostgres } from '../support/use-postgres.js'

const postgres = usePostgres({ count: 3, own: true })
let rig: TwoPhaseRig
beforeAll(async () => {
  rig = new TwoPhaseRig(postgres())
  await rig.prepare()
})

const all = [...SHARDS]

interface End {
  readonly committed?: true
  readonly code?: string
}

const endOf = (commit: Promise<unknown>): Promise<End> =>
  commit.then(
    () => ({ committed: true as const }),
    (error: { code: string }) => ({ code: error.code }),
  )

describe('kill −9 of a backend', () => {
  const cases: [TwoPhaseStep, number, End, number[]][] = [
    ['begun', 0, { code: 'TWO_PHASE_ROLLED_BACK' }, []],
    ['begun', 1, { code: 'TWO_PHASE_ROLLED_BACK' }, []],
    ['readied', 0, { code: 'TWO_PHASE_ROLLED_BACK' }, []],
    ['readied', 2, { code: 'TWO_PHASE_ROLLED_BACK' }, []],
    ['prepared', 0, { code: 'TWO_PHASE_ROLLED_BACK' }, []],
    ['prepared', 1, { committed: true }, all],
    ['decided', 0, { committed: true }, all],
    ['decided', 2, { committed: true }, all],
    ['committed', 1, { committed: true }, all],
  ]
  for (const [step, victim, end, expected] of cases) {
    const which = victim === 0 ? 'the deciding shard' : `shard ${victim}`
    it(`of ${which} at "${step}" ends with ${expected.length === 0 ? 'nothing' : 'all'}`, async () => {
      const { tx, parts } = await rig.begin()
      const commit = rig.commit(
        parts,
        at(step, () => void process.kill(parts[victim]!.server.processId, 'SIGKILL')),
      )
      expect(await endOf(commit)).toEqual(end)
      for (const { server } of parts) server.destroy()
      await rig.allUp()
      await rig.recoverAll()
      expect(await rig.landed(tx)).toEqual(expected)
    }, 30_000)
  }
})

/** Kills a backend that is just committing; tries until it meets one. */
async function killCommitting(shard: number): Promise<void> {
  const deadline = Date.now() + 20_000
  for (;;) {
    const rows = await postgres().query(
      `SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
         AND (query LIKE '%PREPARE%' OR query LIKE '%decide%') ORDER BY random() LIMIT 1`,
      [],
      shard,
    )
    try {
      if (rows[0]) process.kill(Number(rows[0]['pid']), 'SIGKILL')
      if (rows[0]) return
    } catch {
      // It has ended meanwhile.
    }
    if (Date.now() > deadline) throw new Error('no backend to kill')
  }
}

describe('under load', () => {
  const ends = new Map<number, End>()
  let running = true

  const transfer = async () => {
    const begun = await rig.begin().catch(() => undefined)
    if (!begun) {
      await new Promise((resolve) => setTimeout(resolve, 20))
      return
    }
    const { tx, parts } = begun
    // Which shard decides changes from one to the next.
    const turned = [...parts.slice(tx % 3), ...parts.slice(0, tx % 3)]
    ends.set(tx, await endOf(rig.commit(turned, { waitMs: 8000 })))
    for (const { server } of parts) server.close()
  }
  const worker = async () => {
    while (running) await transfer()
  }
  const isRight = (end: End, landed: number[]) => {
    if (end.code === 'TWO_PHASE_UNKNOWN') return landed.length === 0 || landed.length === 3
    return landed.length === (end.committed ? 3 : 0)
  }

  it('shards that die again and again end with the same rows', async () => {
    const workers = [worker(), worker(), worker(), worker()]
    for (let kill = 0; kill < 4; kill++) {
      await rig.allUp()
      const before = ends.size
      await expect.poll(() => ends.size, { timeout: 20_000 }).toBeGreaterThan(before + 10)
      await killCommitting(kill % 3)
    }
    running = false
    await Promise.all(workers)
    await rig.allUp()
    await rig.recoverAll()
    const wrong: string[] = []
    for (const [tx, end] of ends) {
      const landed = await rig.landed(tx)
      if (!isRight(end, landed)) wrong.push(`${tx}: ${JSON.stringify(end)} ${landed}`)
    }
    expect(wrong).toEqual([])
    expect(ends.size).toBeGreaterThan(40)
  }, 120_000)
})
