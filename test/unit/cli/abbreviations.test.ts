import { expect, test } from 'vitest'
import { type FlagShape, fullWords } from '../../../src/cli/abbreviations.js'

const option = (char?: string): FlagShape => ({ type: 'option', char })
const flags: Readonly<Record<string, FlagShape>> = {
  time: option('T'),
  transactions: option('t'),
  log: { type: 'boolean', char: 'l' },
  'log-prefix': option(),
  partitions: option(),
  'partition-method': option(),
  scale: option('s'),
  threshold: { type: 'option', multiple: true },
  seed: { type: 'option', aliases: ['random-seed'] },
  json: { type: 'boolean' },
}
const names = {
  theirs: [
    ...['time', 'transactions', 'log', 'log-prefix', 'partitions', 'partition-method', 'scale'],
    'random-seed',
  ],
  ours: ['threshold', 'seed', 'sweep', 'json', 'time'],
}
const full = (argv: readonly string[]) => fullWords(argv, flags, names)

test.each([
  [['--ti=3'], ['--time=3']],
  [['--tr', '5'], ['--transactions=5']],
  [['--log'], ['--log']],
  [['--log-p', 'x'], ['--log-prefix=x']],
  [['--s=10'], ['--scale=10']], // pgbench's name wins over seed and sweep
  [['--se=1'], ['--seed=1']],
  [['--thre', 'p99<5ms'], ['--threshold=p99<5ms']],
  [
    ['-t', '5', 'host=a --ti'],
    ['--transactions=5', 'host=a --ti'],
  ],
  [
    ['--ti=1', '--', '--ti=2', '-t'],
    ['--time=1', '--', '--ti=2', '-t'],
  ],
  [['--nothing=1'], ['--nothing=1']],
  [['--time=a=b'], ['--time=a=b']],
])('%j is %j', (argv, words) => {
  expect(full(argv)).toEqual(words)
})

test.each([
  [['-lt5'], ['--log', '--transactions=5']],
  [
    ['-lt', '5', '-'],
    ['--log', '--transactions=5', '-'],
  ],
  [['-t=5'], ['--transactions==5']], // getopt takes what stands behind the letter
  [
    ['-lZt5', '-t'],
    ['--log', '-Zt5', '--transactions'],
  ],
  // a value may look like an option
  [['--log-prefix', '--ti'], ['--log-prefix=--ti']],
  [['-t', '-1'], ['--transactions=-1']],
])('letters: %j is %j', (argv, words) => {
  expect(full(argv)).toEqual(words)
})

test('of an option that is given again the last one counts, unless it may come many times', () => {
  expect(full(['-t', '1', 'db', '--tra=2', '-l', '-t3'])).toEqual([
    'db',
    '--log',
    '--transactions=3',
  ])
  expect(full(['--seed=1', '--random-seed', '2'])).toEqual(['--random-seed=2'])
  expect(full(['--threshold=a', '--threshold', 'b'])).toEqual(['--threshold=a', '--threshold=b'])
})

test.each([
  ['--t', '--time --transactions'],
  ['--partition', '--partitions --partition-method'],
  ['--lo', '--log --log-prefix'],
])('%s is ambiguous', (written, possible) => {
  expect(() => full([written])).toThrow(
    `option "${written}" is ambiguous; possibilities: ${possible}`,
  )
})
