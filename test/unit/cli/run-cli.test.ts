/** PgDog's habits as our commands. */
import { describe, expect, test } from 'vitest'
import { rewriteArgv } from '../../../src/cli/run-cli.js'

const ids = ['serve', 'setup', 'hash-password', 'config:check', 'config:show']

describe('rewriteArgv', () => {
  test.each<[string, string]>([
    ['--config a --users b', 'serve --config a --users b'],
    ['-c a', 'serve -c a'],
    ['--config=a --port 5', 'serve --config=a --port 5'],
    ['-d postgres://x', 'serve -d postgres://x'],
    ['--port 0', 'serve --port 0'],
    ['run --port 1', 'serve --port 1'],
    ['-c a run -p 3', 'serve -c a -p 3'],
    ['hash secret', 'hash-password secret'],
    ['configcheck', 'config check'],
    ['-c a -u b configcheck', 'config check -c a -u b'],
    ['-c a setup --database d', 'setup -c a --database d'],
    ['-c a config check', 'config check -c a'],
    ['config check -c a', 'config check -c a'],
    ['serve -c a', 'serve -c a'],
    ['--help', '--help'],
    ['--version', '--version'],
    ['', ''],
    ['nonsense', 'nonsense'],
  ])('%s', (typed, expected) => {
    expect(rewriteArgv(typed.split(' ').filter(Boolean), ids).join(' ')).toBe(expected)
  })

  test('an alias stands only where its command exists', () => {
    expect(rewriteArgv(['run'], ['config:check'])).toEqual(['run'])
    expect(rewriteArgv(['-c', 'a'], ['config:check'])).toEqual(['-c', 'a'])
  })
})
