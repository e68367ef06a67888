/**
 * Words of the command line as getopt_long reads those of pgbench: long options by any beginning that means only one,
 * bundles of letters, values that look like options; of an option that is given again the last one counts. Names that
 * pgbench has decide alone: a script written for pgbench means the same here, whatever we have added.
 */
import { engineError } from '../errors/engine-error.js'

interface OptionNames {
  readonly theirs: readonly string[]
  readonly ours: readonly string[]
}

/** What has to be known of a flag to read its words. */
export interface FlagShape {
  readonly type: 'boolean' | 'option'
  readonly char?: string | undefined
  readonly multiple?: boolean | undefined
  readonly aliases?: readonly string[] | undefined
}

/** The words with every option in full and with its value in the same word; behind `--` as they are. @throws BENCH_USAGE for a beginning that several names share */
export function fullWords(
  argv: readonly string[],
  flags: Readonly<Record<string, FlagShape>>,
  names: OptionNames,
): string[] {
  const reader = new WordReader(argv, flags, names)
  return reader.read()
}

class WordReader {
  readonly #words: string[]
  readonly #flags: Readonly<Record<string, FlagShape>>
  readonly #names: OptionNames
  readonly #read: { readonly flag?: string; readonly word: string }[] = []

  constructor(
    argv: readonly string[],
    flags: Readonly<Record<string, FlagShape>>,
    names: OptionNames,
  ) {
    this.#words = [...argv]
    this.#flags = flags
    this.#names = names
  }

  read(): string[] {
    for (let word = this.#words.shift(); word !== undefined; word = this.#words.shift()) {
      if (word === '--') {
        this.#read.push({ word }, ...this.#words.map((rest) => ({ word: rest })))
        break
      }
      if (/^--[a-z]/.test(word)) this.#long(word)
      else if (/^-[^-]/.test(word)) this.#letters(word)
      else this.#read.push({ word })
    }
    return this.#read.map(({ word }) => word)
  }

  #long(word: string): void {
    const equals = word.indexOf('=')
    const written = word.slice(2, equals < 0 ? undefined : equals)
    const value = equals < 0 ? undefined : word.slice(equals + 1)
    const name = nameOf(written, this.#names)
    const flag = Object.keys(this.#flags).find(
      (one) => one === name || this.#flags[one]?.aliases?.includes(name),
    )
    if (flag === undefined || this.#flags[flag]?.type !== 'option')
      this.#read.push({ word: `--${name}${value === undefined ? '' : `=${value}`}` })
    else this.#option(flag, name, value)
  }

  /** `-nc2` is `-n -c 2`. What no flag has is left to be refused. */
  #letters(word: string): void {
    for (let i = 1; i < word.length; i++) {
      const flag = Object.keys(this.#flags).find((one) => this.#flags[one]?.char === word[i])
      if (flag === undefined) {
        this.#read.push({ word: `-${word.slice(i)}` })
        return
      }
      if (this.#flags[flag]?.type === 'option') {
        this.#option(flag, flag, word.length === i + 1 ? undefined : word.slice(i + 1))
        return
      }
      this.#read.push({ word: `--${flag}` })
    }
  }

  /** With its value, else the next word. */
  #option(flag: string, name: string, given: string | undefined): void {
    const value = given ?? this.#words.shift()
    const earlier = this.#flags[flag]?.multiple
      ? -1
      : this.#read.findIndex((one) => one.flag === flag)
    if (earlier >= 0) this.#read.splice(earlier, 1)
    this.#read.push({ flag, word: value === undefined ? `--${name}` : `--${name}=${value}` })
  }
}

function nameOf(written: string, { theirs, ours }: OptionNames): string {
  const all = [...theirs, ...ours]
  if (all.includes(written)) return written
  for (const names of [theirs, all]) {
    const fitting = [...new Set(names.filter((name) => name.startsWith(written)))]
    if (fitting.length === 1) return fitting[0] as string
    if (fitting.length > 1) {
      const possible = fitting.map((name) => `--${name}`).join(' ')
      throw engineError('BENCH_USAGE', {
        message: `option "--${written}" is ambiguous; possibilities: ${possible}`,
      })
    }
  }
  return written // oclif says that it knows no such option
}

/** The long options of pgbench 15. It knows --help and --version as whole words only. */
const pgbenchOptions: readonly string[] =
  'aggregate-interval builtin client connect debug define failures-detailed file fillfactor foreign-keys host index-tablespace init-steps initialize jobs latency-limit log log-prefix max-tries no-vacuum partition-method partitions port progress progress-timestamp protocol quiet random-seed rate report-per-command sampling-rate scale select-only show-script skip-some-updates tablespace time transactions unlogged-tables username vacuum-all verbose-errors'.split(
    ' ',
  )

/** The words of a command of `bench` with every option in full. */
export function fullNames(
  argv: readonly string[],
  flags: Readonly<Record<string, FlagShape>>,
): string[] {
  return fullWords(argv, flags, {
    theirs: pgbenchOptions,
    ours: [...Object.keys(flags), 'help', 'version'],
  })
}
