import { expect, test } from 'vitest'
import { SendAgain } from '../../../../src/session/requests/send-again.js'
import { FakeClock } from '../../../support/fake-clock.js'

const refusal = Buffer.from('E....SERROR\0C25006\0npgshard_fence\0\0')

function rig() {
  const clock = new FakeClock()
  const core = {
    again: undefined as (() => void) | undefined,
    access: {
      epoch: {
        isMoving: true,
        mark: Buffer.from('npgshard_fence\0'),
        refused: async () => undefined,
      },
    },
    environment: { clock },
    transaction: { isExplicit: false },
    running: { at: 0, awaitsSync: false } as { at: number; awaitsSync: boolean } | undefined,
    output: { bytesSent: 7, forgotten: 0, forget: () => void core.output.forgotten++ },
    held: {
      pins: new Set<string>(),
      isClosed: false,
      released: 0,
      releaseAll: () => void core.held.released++,
    },
    script: undefined as unknown,
    listening: undefined as unknown,
    cancelled: false,
    timedOut: undefined,
    failures: [] as unknown[],
    fail: (error: unknown) => void core.failures.push(error),
  }
  return { core, clock, sendAgain: new SendAgain(core) }
}

const takes = (sendAgain: SendAgain) => sendAgain.takes(refusal, 0, refusal.length)

test('O3: a refused request is run anew, as if it had not been sent', async () => {
  const { core, clock, sendAgain } = rig()
  let runs = 0
  sendAgain.keep(() => void runs++)
  expect(takes(sendAgain)).toBe(true)
  expect(core.output.forgotten).toBe(1)
  expect(sendAgain.isDue).toBe(true)
  expect(sendAgain.start()).toBe(0)
  for (let i = 0; i < 10; i++) await Promise.resolve()
  await clock.advance(1000)
  for (let i = 0; i < 10; i++) await Promise.resolve()
  expect(core.held.released).toBe(1)
  expect(runs).toBe(1)
  // A batch whose books say that it failed would only be answered to its end.
  expect(core.running).toBeUndefined()
})

test.each([
  [
    'in a transaction',
    (core: ReturnType<typeof rig>['core']) => (core.transaction.isExplicit = true),
  ],
  ['after a part of the answer went out', (core) => (core.output.bytesSent = 8)],
  ['behind a statement that was done', (core) => (core.running = { at: 1, awaitsSync: false })],
  ['before its Sync', (core) => (core.running = { at: 0, awaitsSync: true })],
  ['on a server that is kept', (core) => core.held.pins.add('temporary table')],
  ['in a script', (core) => (core.script = {})],
] satisfies [string, (core: ReturnType<typeof rig>['core']) => unknown][])(
  'O3: a refusal %s is the client’s to hear',
  (_, change) => {
    const { core, sendAgain } = rig()
    sendAgain.keep(() => undefined)
    change(core)
    expect(takes(sendAgain)).toBe(false)
    expect(core.output.forgotten).toBe(0)
  },
)

test('O3: another 25006 than the fence’s is the client’s to hear', () => {
  const { sendAgain } = rig()
  sendAgain.keep(() => undefined)
  const other = Buffer.from('E....SERROR\0C25006\0Mcannot execute INSERT\0\0')
  expect(sendAgain.takes(other, 0, other.length)).toBe(false)
})
