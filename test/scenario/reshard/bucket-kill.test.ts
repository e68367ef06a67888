/** kill −9 of a run that adds a shard, or takes one away, at the places of its cutover, while clients write and read: then resume. */
import { expect, test } from 'vitest'
import { bucketPoints, faultPoints } from '../../../src/reshard/steps/steps.js'
import { connectThrough, startWriters } from '../../support/live-shop.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { makeBucketShop, startCounting } from './bucket-rig.js'
import { expectLedger, outputOf, reshard, settings, slotsLeft, startServe } from './cutover-rig.js'

const postgres = usePostgres({ version: 15, settings })

const ofCutover = faultPoints.filter((point) => point.startsWith('cutover:'))

/** What was planned for the shards of before is refused rather than run on those of now: asked again. */
async function countLate(port: number): Promise<number> {
  for (;;) {
    try {
      const client = await connectThrough(postgres(), port)
      const sql = 'SELECT count(*)::int AS n FROM acct WHERE tenant > 1000000'
      const { rows } = await client.query(sql).finally(() => client.end())
      return rows[0].n
    } catch (error) {
      expect((error as Error).message).toContain('changed while the statement waited')
    }
  }
}

const points = bySize(['cutover:half-settled'], [...bucketPoints, ...ofCutover])

test.each([
  ...points.map((point) => ['added', point] as const),
  ...points.map((point) => ['removed', point] as const),
])(
  'O1: a shard is %s, kill −9 at %s: nobody reads a row twice or misses one',
  async (how, point) => {
    const shop = await makeBucketShop(postgres(), 2, how)
    const { program, port } = await startServe(shop)
    const writers = startWriters(postgres(), port, 4)
    const counting = await startCounting(postgres(), port)
    await waitFor(() => writers.model.size > 50)
    const fault = { PGSHARD_FAULT: point }
    const killed = await reshard(shop, 'run', port, ['--no-reverse'], fault)
    expect(killed.signal, outputOf(killed)).toBe('SIGKILL')
    // One that starts in between must not serve by the map of its file either.
    const second = await startServe(shop)
    const counted = countLate(second.port)
    counted.catch(() => undefined)
    const resumed = await reshard(shop, 'resume', port, ['--no-reverse'])
    expect(resumed.code, outputOf(resumed)).toBe(0)
    expect(await counted).toBe(400)
    const atSwitch = writers.model.size
    await waitFor(() => writers.model.size > atSwitch + 50 || writers.errors.length > 0)
    await writers.stop()
    expect(writers.errors).toEqual([])
    expect((await counting.stop()).wrong).toEqual([])
    const still = new Map(Array.from({ length: 400 }, (_, i) => [`${1_000_001 + i}/${i + 1}`, 7]))
    await expectLedger(postgres(), shop.to, writers.model, still)
    expect(await slotsLeft(postgres())).toEqual([])
    await second.program.stop()
    await program.stop()
  },
  240_000,
)
