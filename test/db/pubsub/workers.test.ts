/** LISTEN with several workers: each has a connection of its own, so a NOTIFY reaches the clients of all. */
import { expect, it } from 'vitest'
import { usePostgres } from '../../support/use-postgres.js'
import { askConsole, startWorkers } from '../../support/workers.js'
import { Listener } from './listener.js'

const postgres = usePostgres({ version: 15 })

it('B6, D217: each worker listens for its own clients, and all of them hear', async () => {
  const served = await startWorkers(postgres(), 2, ['default_pool_size = 4'])
  const listeners = await Promise.all(
    Array.from({ length: 8 }, () => Listener.at(served, 'listen a')),
  )
  const rows = await askConsole(served, 'SHOW LISTENERS')
  expect(rows.map(({ worker }) => worker).sort()).toEqual(['0', '1'])
  expect(rows.reduce((sum, row) => sum + Number(row['listeners']), 0)).toBe(8)
  const [first] = listeners
  for (const payload of ['one', 'two']) await first!.query(`notify a, '${payload}'`)
  await postgres().query("notify a, 'three'")
  for (const listener of listeners) {
    expect(await listener.until('three')).toEqual(['one', 'two', 'three'])
    await listener.end()
  }
})
