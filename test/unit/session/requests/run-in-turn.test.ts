/** Requests whose shards were exchanged while they waited: run again in turn, each once, unless its client has left or cancelled. */
import { expect, test } from 'vitest'
import { type EngineError, engineError } from '../../../../src/errors/engine-error.js'
import { isOutdated, runInTurn } from '../../../../src/session/requests/send-again.js'

type Core = Parameters<typeof runInTurn>[0]

/** A session as far as this looks at it. */
function session(with_: { isClosed?: boolean; awaitsSync?: boolean } = {}) {
  const failed: EngineError[] = []
  const core = {
    running: { at: 0, awaitsSync: with_.awaitsSync ?? false },
    held: { isClosed: with_.isClosed ?? false },
    cancelled: false,
    timedOut: undefined as EngineError | undefined,
    fail: (error: EngineError) => void failed.push(error),
  }
  return { core: core as typeof core & Core, failed }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))

test('who exchanged the shards goes on before any of those that waited, and they one by one', async () => {
  const ran: number[] = []
  for (const i of [0, 1, 2]) runInTurn(session().core, () => void ran.push(i))
  await Promise.resolve()
  expect(ran).toEqual([])
  await nextTurn()
  expect(ran).toEqual([0])
  await nextTurn()
  await nextTurn()
  expect(ran).toEqual([0, 1, 2])
})

test('a flushed batch without its Sync runs at once: its client may send on', () => {
  let isRun = false
  runInTurn(session({ awaitsSync: true }).core, () => {
    isRun = true
  })
  expect(isRun).toBe(true)
})

test('nothing runs for a client that left or cancelled meanwhile', async () => {
  const ran: string[] = []
  const [gone, cancelled, late] = [session(), session(), session()]
  runInTurn(gone.core, () => void ran.push('gone'))
  runInTurn(cancelled.core, () => void ran.push('cancelled'))
  runInTurn(late.core, () => void ran.push('late'))
  Object.assign(gone.core.held, { isClosed: true })
  const timedOut = engineError('SESSION_QUERY_TIMEOUT', { limit: 'x' })
  Object.assign(cancelled.core, { cancelled: true })
  Object.assign(late.core, { cancelled: true, timedOut })
  for (let turn = 0; turn < 4; turn++) await nextTurn()
  expect(ran).toEqual([])
  expect(gone.failed).toEqual([])
  expect(cancelled.failed.map(({ code }) => code)).toEqual(['SESSION_CANCELLED'])
  expect(late.failed).toEqual([timedOut])
})

test('a request that stood in line by an older map is failed as one of a pool is, and only such', () => {
  const failed: EngineError[] = []
  const core = {
    access: { planner: { generation: 3 as number | undefined } },
    fail: (error: EngineError) => void failed.push(error),
  } as unknown as Parameters<typeof isOutdated>[0]
  expect(isOutdated(core, 3)).toBe(false)
  expect(failed).toEqual([])
  expect(isOutdated(core, 2)).toBe(true)
  expect(isOutdated(core, undefined)).toBe(true)
  // What `again` knows as a request that may be planned anew.
  expect(failed.map(({ code }) => code)).toEqual(['POOL_LAYOUT_CHANGED', 'POOL_LAYOUT_CHANGED'])
})
