/** What becomes of connections that are open and not taken, and which sessions fit. */
import { expect, test } from 'vitest'
import { parseConninfo } from '../../../src/topology/conninfo.js'
import { connectCandidates, sessionMismatch } from '../../../src/topology/host-candidates.js'
import { Prng } from '../../../src/topology/prng.js'
import { bareEnvironment as environment } from '../../support/conninfo-environment.js'
import { FakeClock } from '../../support/fake-clock.js'
import { waitFor } from '../../support/wait-for.js'

test('a primary is one whose sessions begin read-only, too', () => {
  const state = { inHotStandby: false, defaultReadOnly: true }
  expect(sessionMismatch('primary', state)).toBeUndefined()
  expect(sessionMismatch('read-write', state)).toBe('session is read-only')
  expect(sessionMismatch('read-only', state)).toBeUndefined()
  expect(sessionMismatch('standby', state)).toBe('server is not in hot standby mode')
})

function walk(text: string, open: () => Promise<string>, asked: () => Promise<never>) {
  const closed: string[] = []
  const clock = new FakeClock()
  const outcome = connectCandidates(parseConninfo(text, environment), open, {
    resolve: async () => ['127.0.0.1'],
    makeRandom: () => Prng.ofSeed(1n),
    clock,
    sessionState: asked,
    close: (connection) => void closed.push(connection),
  }).catch((error: Error) => error.message)
  return { closed, clock, outcome }
}

test('a connection that cannot tell its state is closed', async () => {
  const { closed, outcome } = walk(
    'host=127.0.0.1 target_session_attrs=primary',
    async () => 'opened',
    async () => {
      throw new Error('no answer')
    },
  )
  expect(await outcome).toContain('no answer')
  expect(closed).toEqual(['opened'])
})

test('a connection that comes behind its time limit is closed', async () => {
  let come: (connection: string) => void = () => undefined
  const { closed, clock, outcome } = walk(
    'host=127.0.0.1 connect_timeout=2',
    () =>
      new Promise((resolve) => {
        come = resolve
      }),
    async () => {
      throw new Error('not asked')
    },
  )
  await waitFor(() => clock.pendingTimers > 0)
  await clock.advance(2000)
  expect(await outcome).toContain('timeout expired')
  come('late')
  await waitFor(() => closed.length > 0)
  expect(closed).toEqual(['late'])
})
