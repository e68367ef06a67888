/** The time that a cutover has left is that of all its statements, not of each. */
import { expect, test } from 'vitest'
import type { HostClient } from '../../../../src/pg/host-client.js'
import { forEver, runWithin } from '../../../../src/reshard/buckets/run-within.js'

/** Notes what it is told. */
function client(): { told: string[]; as: HostClient } {
  const told: string[] = []
  const query = async ({ text }: { text: string }) => {
    told.push(text)
    return { rows: [] }
  }
  return { told, as: { query } as unknown as HostClient }
}

test('O1: each statement gets what those before it have left, in order', async () => {
  const { told, as } = client()
  const left = [1000, 250.4, 1]
  await runWithin(as, ['one', 'two', 'three'], () => left.shift() as number)
  expect(told).toEqual(
    [
      [1000, 'one'],
      [251, 'two'],
      [1, 'three'],
    ].map(
      ([ms, sql]) => `SET LOCAL statement_timeout = ${ms}; SET LOCAL lock_timeout = ${ms}; ${sql}`,
    ),
  )
})

test('O1: behind the decision there is no bound', async () => {
  const { told, as } = client()
  await runWithin(as, ['one'], forEver)
  expect(told[0]).toContain('statement_timeout = 0; SET LOCAL lock_timeout = 0; one')
})
