/** kill −9 of the tool in a cutover under writers, at every point of it; resume goes on, and no write is lost. */
import { expect, test } from 'vitest'
import { cutoverPoints } from '../../../src/reshard/cutover/cutover.js'
import { makeShop, startWriters } from '../../support/live-shop.js'
import { testSize } from '../../support/test-size.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { expectLedger, outputOf, reshard, settings, startServe } from './cutover-rig.js'

const postgres = usePostgres({ version: 15, settings })

test.runIf(testSize === 'full').each(cutoverPoints)(
  'O1: at cutover:%s; resume goes on, every write is there',
  async (point) => {
    const shop = await makeShop(postgres(), 2, 3)
    const { program, port } = await startServe(shop)
    const writers = startWriters(postgres(), port, 4)
    await waitFor(() => writers.model.size > 50)
    const fault = { NODE_ENV: 'test', PGSHARD_FAULT: `cutover:${point}` }
    const died = await reshard(shop, 'run', port, [], fault)
    expect(died.signal, outputOf(died)).toBe('SIGKILL')
    const resumed = await reshard(shop, 'resume', port)
    expect(resumed.code, outputOf(resumed)).toBe(0)
    const atSwitch = writers.model.size
    await waitFor(() => writers.model.size > atSwitch + 50)
    await writers.stop()
    expect(writers.errors).toEqual([])
    await expectLedger(postgres(), shop.to, writers.model)
    await program.stop()
  },
  240_000,
)
