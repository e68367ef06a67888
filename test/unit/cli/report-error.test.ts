/** What a user reads when something fails, and the exit code, for every kind of thrown value. */
import { describe, expect, test } from 'vitest'
import { describeFailure, failureJson, renderFailure } from '../../../src/cli/report-error.js'
import { engineError } from '../../../src/errors/engine-error.js'

const withFields = (message: string, fields: object): Error =>
  Object.assign(new Error(message), fields)
const parseError = (message: string): Error => withFields(message, { oclif: { exit: 2 } })

describe('describeFailure', () => {
  test('our own error keeps its words and its exit code', () => {
    const error = engineError(
      'FILE_MISSING',
      { path: 'a', reason: 'gone' },
      { cause: new Error('outer', { cause: 'inner' }), detail: 'one\ntwo' },
    )
    const failure = describeFailure(error)
    expect(failure).toMatchObject({ code: 'FILE_MISSING', exitCode: 3, causes: ['outer', 'inner'] })
    expect(renderFailure(failure, false)).toBe(
      'pgshard: could not open file "a": gone\nDETAIL:\n  one\n  two\nHINT: check the path and that this user may read it\n',
    )
    expect(renderFailure(failure, true)).toContain(
      'CODE: FILE_MISSING (SQLSTATE 58P01)\nCAUSE: outer\nCAUSE: inner\n',
    )
  })

  test.each([
    ['Nonexistent flag: --x\nSee more help with --help', 'nonexistent flag: --x'],
    [
      'Missing 1 required arg:\nfile  the file\nSee more help with --help',
      'missing 1 required arg: file: the file',
    ],
    ['The following error occurred:\n  Missing required flag to', 'missing required flag --to'],
    [
      'The following errors occurred:\n  Missing a\n  Missing b\nSee more help with --help',
      'missing a; missing b',
    ],
    [
      'Parsing --to \n\tExpected an integer but received: x\nSee more help with --help',
      '--to: expected an integer but received: x',
    ],
  ])('a parse error is usage, in one line: %j', (message, expected) => {
    expect(describeFailure(parseError(message), 'config:check')).toEqual({
      code: 'USAGE',
      sqlstate: '22023',
      message: expected,
      hint: 'see "pgshard config check --help"',
      exitCode: 2,
      causes: [],
    })
  })

  test.each<[string, Error, string, number]>([
    ['a file', withFields('ENOENT: …', { code: 'ENOENT', path: '/a' }), 'FILE_MISSING', 3],
    ['a port', withFields('connect ECONNREFUSED', { code: 'ECONNREFUSED' }), 'CONNECT_FAILED', 4],
    ['a login', withFields('no', { code: '28P01', severity: 'FATAL' }), 'SERVER_ERROR', 4],
    ['a statement', withFields('no', { code: '42P01', severity: 'ERROR' }), 'SERVER_ERROR', 1],
    ['a bug', new TypeError('x is not a function'), 'INTERNAL', 1],
    ['no file at all', withFields('ENOENT', { code: 'ENOENT' }), 'INTERNAL', 1],
  ])('%s', (_, error, code, exitCode) => {
    expect(describeFailure(error)).toMatchObject({ code, exitCode })
  })

  test('a stack is never shown, with --verbose the place of a bug', () => {
    const text = renderFailure(describeFailure(new TypeError('broken')), true)
    expect(text).not.toMatch(/^\s+at /m)
    expect(text.split('\n').length).toBeLessThan(7)
    expect(describeFailure('a string')).toMatchObject({ message: 'internal error: a string' })
  })

  test('--json', () => {
    expect(failureJson(describeFailure(engineError('USAGE', { message: 'no' })))).toEqual({
      error: { code: 'USAGE', sqlstate: '22023', message: 'no' },
    })
  })
})
