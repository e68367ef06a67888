/** Completion: what bash offers at each word, and that all shells hear of every command and flag. */
import { spawnSync } from 'node:child_process'
import { describe, expect, it } from 'vitest'
import { type CompletedCommand, completionScript, shells } from '../../../src/cli/completion.js'

const flag = (name: string, values: readonly string[] = [], takesValue = values.length > 0) => ({
  name,
  takesValue,
  values,
  summary: `it's the [flag] ${name}: $1`,
})

const commands: CompletedCommand[] = [
  { words: 'bench', summary: 'drive load', flags: [flag('latency')] },
  { words: 'bench init', summary: 'fill', flags: [{ ...flag('scale', [], true), char: 's' }] },
  { words: 'config check', summary: 'check', flags: [flag('connect')] },
  { words: 'serve', summary: 'the proxy', flags: [flag('log-format', ['text', 'json'])] },
]

/** The words offered for a line that ends in the word to be completed. */
function offered(line: string): string[] {
  const words = line.split(' ')
  const script = `${completionScript('bash', 'pgshard', commands)}
COMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${words.length - 1}
_pgshard; printf '%s\\n' "\${COMPREPLY[@]}"`
  const { stdout, stderr } = spawnSync('bash', ['--norc', '-c', script], { encoding: 'utf8' })
  expect(stderr).toBe('')
  return stdout.split('\n').filter((word) => word !== '')
}

describe('completion', () => {
  it.each([
    ['pgshard ', ['bench', 'config', 'serve']],
    ['pgshard se', ['serve']],
    ['pgshard config ', ['check']],
    ['pgshard config check --', ['--connect']],
    ['pgshard bench -', ['--latency']],
    ['pgshard bench init -', ['--scale', '-s']],
    ['pgshard bench init -s ', []],
    ['pgshard serve --log-format ', ['text', 'json']],
    ['pgshard serve --log-format j', ['json']],
  ])('offers in bash behind "%s"', (line, words) => expect(offered(line)).toEqual(words))

  it.each(shells)('names every command and flag for %s', (shell) => {
    const script = completionScript(shell, 'pgshard', commands)
    for (const word of [
      'bench',
      'init',
      'check',
      'serve',
      'latency',
      'scale',
      'connect',
      'log-format',
      'json',
    ])
      expect(script).toContain(word)
    expect(script).not.toContain("it's")
  })
})
