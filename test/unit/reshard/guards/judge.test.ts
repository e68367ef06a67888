import { expect, test } from 'vitest'
import { DEFAULT_LIMITS, readLimits } from '../../../../src/reshard/guards/guard-limits.js'
import { judge, type SourceReading } from '../../../../src/reshard/guards/judge.js'

const calm: SourceReading = {
  latencyMs: 1,
  replicaLagMs: undefined,
  walKept: 0,
  lagBytes: 0,
  isLost: false,
}
const limits = {
  ...DEFAULT_LIMITS,
  maxWalKept: 1000,
  maxSourceLatencyMs: 100,
  maxReplicaLagMs: 1000,
}
const look = (reading: Partial<SourceReading>, isHeld = false, given = limits) =>
  judge([calm, { ...calm, ...reading }], given, isHeld).do

test('the worst source decides: the copy waits at three quarters of the WAL that may be kept, and the run ends beyond it', () => {
  expect(look({ walKept: 700 })).toBe('go')
  expect(look({ walKept: 751 })).toBe('hold')
  expect(look({ walKept: 1001 })).toBe('abort')
  expect(look({ walKept: 1001 }, false, { ...limits, walAction: 'pause' })).toBe('hold')
  expect(look({ walKept: 1e15 }, false, { ...limits, maxWalKept: 0 })).toBe('go')
})

test('what is held goes on only well below its limit', () => {
  expect(look({ walKept: 700 }, true)).toBe('hold')
  expect(look({ walKept: 590 }, true)).toBe('go')
  expect(look({ latencyMs: 90 }, true)).toBe('hold')
  expect(look({ latencyMs: 79 }, true)).toBe('go')
})

test('a slow source and a standby that lags make the copy wait, and say why', () => {
  expect(look({ latencyMs: 101 })).toBe('hold')
  expect(look({ replicaLagMs: 1001 })).toBe('hold')
  expect(judge([{ ...calm, replicaLagMs: 5000 }], limits, false).reason).toBe(
    'a standby is 5000 ms behind, 1000 ms are allowed',
  )
})

test('settings are read with units, and refused by name', () => {
  expect(
    readLimits({
      max_rate: '20MB',
      max_wal_kept: 'off',
      max_source_latency: '0.2s',
      wal_action: 'pause',
    }),
  ).toEqual({
    maxRate: 20 * 2 ** 20,
    maxWalKept: 0,
    walAction: 'pause',
    maxSourceLatencyMs: 200,
    maxReplicaLagMs: 0,
  })
  expect(() => readLimits({ max_rate: '20 parsecs' })).toThrowError(
    'setting "max_rate" cannot be "20 parsecs"',
  )
  expect(() => readLimits({ wal_action: 'panic' })).toThrowError('cannot be "panic"')
})
