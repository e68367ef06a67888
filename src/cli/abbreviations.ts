/**
 * Long options by any beginning that means only one, as getopt_long reads those of pgbench. Names that pgbench has
 * decide alone: a script written for pgbench means the same here, whatever we have added.
 */
import { engineError } from '../errors/engine-error.js'

/** Words behind `--` are left as they are. @throws BENCH_USAGE for a beginning that several names share */
export function expandAbbreviations(
  argv: readonly string[],
  names: { readonly theirs: readonly string[]; readonly ours: readonly string[] },
): string[] {
  const end = argv.indexOf('--')
  return argv.map((word, at) => {
    const match = /^--([a-z][a-z-]*)(=[\s\S]*)?$/.exec(word)
    if (match === null || (end >= 0 && at >= end)) return word
    const [, written = '', value = ''] = match
    return `--${nameOf(written, names)}${value}`
  })
}

function nameOf(
  written: string,
  { theirs, ours }: { readonly theirs: readonly string[]; readonly ours: readonly string[] },
): string {
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

/** The long options of pgbench 15. */
const pgbenchOptions: readonly string[] =
  'aggregate-interval builtin client connect dbname debug define failures-detailed file fillfactor foreign-keys help host index-tablespace init-steps initialize jobs latency-limit log log-prefix max-tries no-vacuum partition-method partitions port progress progress-timestamp protocol quiet random-seed rate report-per-command sampling-rate scale select-only show-script skip-some-updates tablespace time transactions unlogged-tables username vacuum-all verbose-errors version'.split(
    ' ',
  )

/** The arguments of a command of `bench` with every long option in full. */
export function fullNames(
  argv: readonly string[],
  command: {
    readonly flags: object
    readonly baseFlags: object
  },
): string[] {
  const ours = [...Object.keys(command.flags), ...Object.keys(command.baseFlags), 'help']
  return expandAbbreviations(argv, { theirs: pgbenchOptions, ours })
}
