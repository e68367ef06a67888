/** A shard added to those that serve: only the buckets that it takes move, under writers, by the whole program. */
import { expect, test } from 'vitest'
import { move, rowsOf, startWriters } from '../../support/live-shop.js'
import { runCli } from '../../support/run-cli.js'
import { bySize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { makeBucketShop, startCounting, tenantsOfFirst, tuplesOf } from './bucket-rig.js'
import { expectLedger, outputOf, reshard, settings, slotsLeft, startServe } from './cutover-rig.js'

const postgres = usePostgres({ version: 15, settings })

/** Rows of shard 0 with a large value that change their keys: from buckets that stay to such that move, and the other way. */
async function moveKeys(database: string, first: number): Promise<Map<string, number>> {
  const client = await postgres().connect(0, database)
  const told = new Map<string, number>()
  const { stay, go } = tenantsOfFirst(3, first, 20)
  const big = 'é\u{1F40C}'.repeat(4000)
  for (const [i, one] of stay.entries()) {
    const [from, to] = i % 2 === 0 ? [one, go[i]] : [go[i], one]
    await client.query('INSERT INTO acct VALUES ($1, $2, $3, 3)', [from, i, big])
    await client.query('UPDATE acct SET tenant = $1 WHERE tenant = $2 AND id = $3', [to, from, i])
    told.set(`${to}/${i}`, 3)
  }
  await client.end()
  return told
}

test('O1: a shard is added under writers: what moves is there once, nothing else is touched', async () => {
  const shop = await makeBucketShop(postgres(), 3)
  const { program, port } = await startServe(shop)
  const writers = startWriters(postgres(), port, bySize(6, 50))
  const counting = await startCounting(postgres(), port)
  await waitFor(() => writers.model.size > 100)
  const plan = await runCli(['reshard', 'plan', '--config', shop.config, ...move, '--json'])
  const outline = JSON.parse(plan.stdout)
  expect(outline.bucket_moves.map(({ from, to }: never) => [from, to])).toEqual([
    [0, 3],
    [1, 3],
    [2, 3],
  ])
  const before = await Promise.all(shop.from.map((one) => tuplesOf(postgres(), one)))
  const refused = await reshard(shop, 'run', port)
  expect(refused.code, outputOf(refused)).toBe(5)
  expect(outputOf(refused)).toContain('--no-reverse')
  const movers = await moveKeys(shop.from[0] as string, 500_000)
  const ready = await reshard(shop, 'run', port, ['--no-reverse', '--stop-after', 'verify'])
  expect(ready.code, outputOf(ready)).toBe(0)
  for (const [key, n] of await moveKeys(shop.from[0] as string, 600_000)) movers.set(key, n)
  const run = await reshard(shop, 'cutover', port, ['--no-reverse'])
  expect(run.code, outputOf(run)).toBe(0)
  expect(JSON.parse(run.stdout)).toMatchObject({ cutover: { epoch: 1, wayBack: false } })
  const atSwitch = writers.model.size
  await waitFor(() => writers.model.size > atSwitch + 100)
  await writers.stop()
  expect(writers.errors).toEqual([])
  const counted = await counting.stop()
  expect(counted.wrong).toEqual([])
  expect(counted.reads).toBeGreaterThan(20)
  const still = new Map(Array.from({ length: 400 }, (_, i) => [`${1_000_001 + i}/${i + 1}`, 7]))
  await expectLedger(postgres(), shop.to, writers.model, still, movers)
  const added = await rowsOf(postgres(), [shop.to[3] as string])
  expect([...added.keys()].filter((key) => still.has(key)).length).toBeGreaterThan(50)
  // Rows of buckets that stay are the tuples that they were.
  for (const [shard, was] of before.entries()) {
    const now = await tuplesOf(postgres(), shop.from[shard] as string)
    for (const [key, place] of was) {
      if (still.has(key)) expect(now.get(key) ?? place, key).toBe(place)
      if (still.has(key)) expect(now.has(key) !== added.has(key), key).toBe(true)
    }
  }
  expect(await slotsLeft(postgres())).toEqual([])
  const status = await runCli(['reshard', 'status', '--config', shop.config, ...move, '--json'])
  expect(JSON.parse(status.stdout)).toMatchObject({ state: 'cut_over' })
  await program.stop()
}, 240_000)
