import { join } from 'node:path'
import { Flags } from '@oclif/core'
import { BaseCommand } from '../src/cli/base-command.js'

export default class Demo extends BaseCommand {
  static override description =
    'Show the whole road in about a minute: four real PostgreSQL shards, data loaded by copy-shard, a proxy, a benchmark, and a move to six shards while clients write. Needs nothing, leaves nothing behind.'

  static override examples = ['<%= config.bin %> demo']

  static override flags = {
    customers: Flags.integer({
      default: 60_000,
      min: 1000,
      max: 1_000_000,
      description: 'how many customers; each comes with four orders',
    }),
  }

  async run(): Promise<object> {
    const { flags } = await this.parse(Demo)
    const { playDemo } = await import('../src/demo/demo.js')
    const { systemClock } = await import('../src/base/clock.js')
    const isSilent = this.jsonEnabled() || this.quiet
    const hasColor = this.colorOn()
    using interrupt = this.interruptible('the clean-up')
    return await playDemo({
      customers: flags.customers,
      program: join(this.config.root, 'bin', 'run.js'),
      clock: systemClock,
      signal: interrupt.soft,
      output: {
        write: (text) => void (isSilent || process.stdout.write(text)),
        isTerminal: process.stdout.isTTY === true && !isSilent,
        hasColor,
        clock: systemClock,
      },
    })
  }
}
