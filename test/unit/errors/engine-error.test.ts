/** Errors made from the catalogue. */
import { describe, expect, test } from 'vitest'
import { engineError, isEngineError, toEngineError } from '../../../src/errors/engine-error.js'

describe('engineError', () => {
  test('fills the braces of message and hint, and takes the rest from the catalogue', () => {
    const error = engineError('CONFIG_UNKNOWN_DATABASE', { database: 'a', known: 'b, c' })
    expect(error).toMatchObject({
      code: 'CONFIG_UNKNOWN_DATABASE',
      sqlstate: '3D000',
      severity: 'ERROR',
      message: 'database "a" is not in the configuration',
      hint: 'the configuration has: b, c',
      retry: 'unknown',
      exitCode: 3,
    })
  })

  test('a value that looks like a brace is not filled again', () => {
    const error = engineError('CONFIG_UNKNOWN_DATABASE', { database: '{known}', known: 'x' })
    expect(error.message).toBe('database "{known}" is not in the configuration')
  })

  test('extras win, the cause is kept', () => {
    const cause = new Error('why')
    const extras = { cause, detail: 'd', hint: 'h', position: 3, retry: 'safe' } as const
    expect(engineError('USAGE', { message: 'm' }, extras)).toMatchObject(extras)
  })
})

test('anything thrown becomes one, ours stay themselves', () => {
  const ours = engineError('CONFIG_NO_DATABASE')
  expect(toEngineError(ours)).toBe(ours)
  const bug = toEngineError(new TypeError('x'))
  expect(bug).toMatchObject({ code: 'INTERNAL', sqlstate: 'XX000', exitCode: 1 })
  expect(bug.cause).toBeInstanceOf(TypeError)
  expect(isEngineError(Object.assign(new Error('x'), { sqlstate: '1' }))).toBe(false)
})
