/** `pgshard bench run`: load in pgbench's way on one or many hosts, with a report per node. */
import { Args } from '@oclif/core'
import { fullNames } from '../../src/cli/abbreviations.js'
import { BaseCommand } from '../../src/cli/base-command.js'
import { connectFlags, initFlags, runFlags } from '../../src/cli/bench-flags.js'

export default class BenchRun extends BaseCommand {
  static override summary = 'Drive load against one or many PostgreSQL hosts and report per node.'
  static override description =
    'Takes the scripts and options of pgbench. Every connection walks the hosts by the rules of libpq (load_balance_hosts, target_session_attrs, connect_timeout). Prints the report of pgbench line for line, then percentiles, then one row per node. Exit code 0; 1 when it cannot begin; 2 when a client was aborted; 3 when a threshold failed.'
  static override examples = [
    "<%= config.bin %> bench -C -c 2 -t 500 'host=a,b,c load_balance_hosts=random connect_timeout=2'",
    "<%= config.bin %> bench -S -c 32 -T 10 -M prepared --threshold 'p99<5ms' postgres://localhost/shop",
  ]

  static override args = {
    target: Args.string({ description: 'connection string, URI or database name' }),
  }

  static override flags = {
    ...connectFlags,
    ...runFlags,
    scale: initFlags.scale,
    'no-vacuum': initFlags['no-vacuum'],
  }

  /** As pgbench: what keeps a run from beginning is exit code 1, since 2 and 3 speak of the run. */
  protected override async catch(error: Error): Promise<never> {
    try {
      return await super.catch(error)
    } catch (exit) {
      const code = (exit as { oclif?: { exit?: number } }).oclif?.exit
      return this.exit(code === 0 || code === 130 ? code : 1)
    }
  }

  async run(): Promise<object> {
    this.argv = fullNames(this.argv, { ...BenchRun.baseFlags, ...BenchRun.flags })
    const { args, flags } = await this.parse(BenchRun)
    const command = await import('../../src/bench/bench-command.js')
    const shown = flags['show-script'] ?? flags.builtin?.find((name) => name === 'list')
    if (shown !== undefined) {
      this.log(command.showScript(shown))
      return {}
    }
    const say = (line: string) => void process.stderr.write(`${line}\n`)
    const options = command.runOptions(args.target, flags, say)
    const { runBench } = await import('../../src/bench/run-bench.js')
    using interrupt = this.interruptible('transactions')
    const sweep = command.sweepOf(flags.sweep)
    if (sweep) {
      const results = []
      for (const [i, clients] of sweep.entries()) {
        if (interrupt.soft.aborted) break
        const own = command.runOfSweep(options, clients, i)
        results.push(await runBench(own, { say, signal: interrupt.soft }))
      }
      for (const line of command.sweepText(results)) this.log(line)
      process.exitCode = Math.max(0, ...results.map(({ exitCode }) => exitCode))
      return { runs: results.map(command.resultJson) }
    }
    const result = await runBench(options, { say, signal: interrupt.soft })
    for (const line of command.resultLines(result, options, this.config.version)) this.log(line)
    if (flags['json-file'] !== undefined) command.writeJson(flags['json-file'], result)
    if (flags.junit !== undefined) command.writeJunit(flags.junit, result)
    if (flags.html !== undefined) command.writeHtml(flags.html, result)
    process.exitCode = result.exitCode
    return command.resultJson(result)
  }
}
