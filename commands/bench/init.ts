/** `pgshard bench init`: the standard tables on every host of a connection string. */
import { Args, Flags } from '@oclif/core'
import { fullNames } from '../../src/cli/abbreviations.js'
import { BaseCommand } from '../../src/cli/base-command.js'
import { connectFlags, initFlags, initOnlyFlags } from '../../src/cli/bench-flags.js'

export default class BenchInit extends BaseCommand {
  static override summary = 'Create and fill the standard tables on every host, each on its own.'
  static override description =
    'Drops, creates, generates, vacuums and keys the four tables of pgbench on each host that the connection string names, and prints the time of each step.'
  static override examples = [
    "<%= config.bin %> bench init -s 10 --unlogged-tables 'host=a,b,c dbname=bench'",
  ]

  static override args = {
    target: Args.string({ description: 'connection string, URI or database name' }),
  }

  static override flags = {
    ...connectFlags,
    ...initFlags,
    ...initOnlyFlags,
    quiet: Flags.boolean({ char: 'q', description: 'a line every 5 seconds only' }),
  }

  async run(): Promise<object> {
    this.argv = fullNames(this.argv, { ...BenchInit.baseFlags, ...BenchInit.flags })
    const { args, flags } = await this.parse(BenchInit)
    const { initOptions } = await import('../../src/bench/bench-command.js')
    const { initTables } = await import('../../src/bench/init/init-tables.js')
    const say = (line: string) => void process.stderr.write(`${line}\n`)
    using interrupt = this.interruptible('nothing: the tables of this node are dropped again')
    const options = initOptions(args.target, flags, flags.quiet, say)
    const nodes = await initTables(options, { say, signal: interrupt.soft })
    return { nodes }
  }
}
