/** `pgshard reshard follow`: the new side kept up to date. */
import { Flags } from '@oclif/core'
import { systemClock } from '../../src/base/clock.js'
import { configOptions } from '../../src/cli/flags.js'
import { stepFlags } from '../../src/cli/reshard-flags.js'
import type { RunReport } from '../../src/reshard/reshard.js'
import { MoveCommand } from './run.js'

const nothingElse = {
  state: 'cut_over',
  ...{
    warnings: [],
    rowsCopied: 0,
    bytesCopied: 0,
    tables: [],
    brokenForeignKeys: [],
    elapsedMs: 0,
  },
} as const

export default class ReshardFollow extends MoveCommand {
  static override summary =
    'Apply what is written on the old shards to the new ones, until interrupted.'
  static override description =
    'Begins a run, or goes on with the one that is open, and keeps the new shards up to date. Ctrl-C once finishes the batch and stops; reshard resume goes on to verify and cutover.'
  static override examples = [
    '<%= config.bin %> reshard follow --from shop --to shop_new --yes',
    '<%= config.bin %> reshard follow --from shop --to shop_new --yes --until-caught-up',
  ]
  static override flags = {
    ...stepFlags,
    reverse: Flags.boolean({
      description: 'after a cutover: apply what is written on the new shards to the old ones',
      default: false,
      exclusive: ['until-caught-up'],
    }),
    'until-caught-up': Flags.boolean({
      description: 'stop when all that was written before has been applied',
      default: false,
    }),
  }

  override async run(): Promise<RunReport> {
    const { flags } = await this.parse(ReshardFollow)
    if (!flags.reverse) return super.run()
    const { loadConfig } = await import('../../src/config/load-config.js')
    const { followBackConfigured } = await import('../../src/reshard/configured-rollback.js')
    const config = loadConfig(configOptions(flags))
    const interrupt = this.interruptible('the batch at hand')
    try {
      const report = await followBackConfigured(config, flags, {
        clock: systemClock,
        listener: { step: (text) => this.note(text) },
        signal: interrupt.soft,
      })
      this.log(`${report.changesApplied} changes applied to the old side`)
      return { ...report, ...nothingElse }
    } finally {
      interrupt.dispose()
    }
  }

  protected override asked(
    flags: Parameters<MoveCommand['asked']>[0],
  ): ReturnType<MoveCommand['asked']> {
    return {
      mode: 'continue',
      stopAfter: 'follow',
      keepFollowing: flags['until-caught-up'] !== true,
    }
  }
}
