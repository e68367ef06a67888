/** kill −9 of the tool in a rollback under writers, at every point of it; called again it goes on, and no write is lost. */
import { expect, test } from 'vitest'
import { cutoverPoints } from '../../../src/reshard/cutover/cutover.js'
import { makeShop, startWriters } from '../../support/live-shop.js'
import { testSize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { expectLedger, outputOf, reshard, settings, startServe } from './cutover-rig.js'

const postgres = usePostgres({ version: 15, settings })

test.runIf(testSize === 'full').each(cutoverPoints)(
  'O1: at rollback:%s; rollback goes on, every write is there',
  async (point) => {
    const shop = await makeShop(postgres(), 2, 3)
    const { program, port } = await startServe(shop)
    const writers = startWriters(postgres(), port, 4)
    await waitFor(() => writers.model.size > 50)
    const there = await reshard(shop, 'run', port)
    expect(there.code, outputOf(there)).toBe(0)
    const fault = { NODE_ENV: 'test', PGSHARD_FAULT: `rollback:${point}` }
    const died = await reshard(shop, 'rollback', port, [], fault)
    expect(died.signal, outputOf(died)).toBe('SIGKILL')
    const back = await reshard(shop, 'rollback', port)
    expect(back.code, outputOf(back)).toBe(0)
    const atReturn = writers.model.size
    await waitFor(() => writers.model.size > atReturn + 50)
    await writers.stop()
    expect(writers.errors).toEqual([])
    await expectLedger(postgres(), shop.from, writers.model)
    await program.stop()
  },
  240_000,
)
