import { describe, expect, test } from 'vitest'
import { EngineError, engineError, isEngineError } from '../../../src/errors/engine-error.js'

/** PgDog's branches, and what stands for each here: one class, told apart by code and SQLSTATE class. */
const branches = [
  ['Io', () => engineError('FILE_MISSING', { path: 'x', reason: 'ENOENT' }), /^(58|F0)/],
  ['Net', () => engineError('NET_CONNECT_FAILED', { address: 'a', reason: 'refused' }), /^08/],
  ['Backend', () => engineError('SERVER_LOST', { server: 'a' }), /^08/],
  [
    'Backend: pool',
    () =>
      engineError('POOL_CHECKOUT_TIMEOUT', {
        ...{ timeoutMs: 1, address: 'a', lent: 1, maxSize: 1, waiting: 1 },
      }),
    /^53/,
  ],
  ['Router', () => engineError('ROUTE_UNSUPPORTED', { what: 'it', advice: 'no' }), /^0A/],
  ['Auth', () => engineError('AUTH_FAILED', { user: 'u' }), /^28/],
  ['Timeout', () => engineError('SESSION_QUERY_TIMEOUT', { limit: 1 }), /^57/],
] as const

describe('error tree', () => {
  test.each(branches)('D210: %s', (_branch, make, sqlstates) => {
    const error = make()
    expect(error).toBeInstanceOf(EngineError)
    expect(error).toBeInstanceOf(Error)
    expect(isEngineError(error)).toBe(true)
    expect(error.sqlstate).toMatch(sqlstates)
    expect(error.message).not.toMatch(/[{}]/)
  })
})
