/** `pgshard bench compare A B`: two saved reports, and whether they differ by more than chance. */
import { Args } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'

export default class BenchCompare extends BaseCommand {
  static override summary = 'Compare two saved reports of bench.'
  static override description =
    'Reads what bench run --json-file has written. Throughput and mean latency are tested second by second with the rank test of Mann and Whitney (5 whole seconds or more, p < 0.01); percentiles are shown. Exit code 0: no difference that stands out of chance; 7: there is one.'
  static override examples = [
    "<%= config.bin %> bench -S -c 8 -T 20 --json-file before.json 'host=a,b dbname=bench'",
    '<%= config.bin %> bench compare before.json after.json',
  ]

  static override args = {
    before: Args.string({ description: 'report of the earlier run', required: true }),
    after: Args.string({ description: 'report of the later run', required: true }),
  }

  async run(): Promise<object> {
    const { args } = await this.parse(BenchCompare)
    const { compareReports, comparisonLines, readReport } = await import(
      '../../src/bench/report/compare.js'
    )
    const names = [args.before, args.after] as const
    const comparison = compareReports(readReport(args.before), readReport(args.after), names)
    for (const line of comparisonLines(comparison)) this.log(line)
    process.exitCode = comparison.is_different ? 7 : 0
    return comparison
  }
}
