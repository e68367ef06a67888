import { expect, test } from 'vitest'
import { expandAbbreviations } from '../../../src/cli/abbreviations.js'

const names = {
  theirs: ['time', 'transactions', 'log', 'log-prefix', 'partitions', 'partition-method', 'scale'],
  ours: ['threshold', 'seed', 'sweep', 'json', 'time'],
}
const expand = (...argv: string[]) => expandAbbreviations(argv, names)

test.each([
  [['--ti=3'], ['--time=3']],
  [
    ['--tr', '5'],
    ['--transactions', '5'],
  ],
  [['--log'], ['--log']],
  [
    ['--log-p', 'x'],
    ['--log-prefix', 'x'],
  ],
  [['--s=10'], ['--scale=10']], // pgbench's name wins over seed and sweep
  [['--se=1'], ['--seed=1']],
  [
    ['--thre', 'p99<5ms'],
    ['--threshold', 'p99<5ms'],
  ],
  [
    ['-t', '5', 'host=a --ti'],
    ['-t', '5', 'host=a --ti'],
  ],
  [
    ['--ti=1', '--', '--ti=2'],
    ['--time=1', '--', '--ti=2'],
  ],
  [['--nothing=1'], ['--nothing=1']],
  [['--time=a=b'], ['--time=a=b']],
])('%j is %j', (argv, full) => {
  expect(expand(...argv)).toEqual(full)
})

test.each([
  ['--t', '--time --transactions'],
  ['--partition', '--partitions --partition-method'],
  ['--lo', '--log --log-prefix'],
])('%s is ambiguous', (written, possible) => {
  expect(() => expand(written)).toThrow(
    `option "${written}" is ambiguous; possibilities: ${possible}`,
  )
})
