/** `pgshard reshard cleanup`: takes away what a run left behind. */
import { Flags } from '@oclif/core'
import { systemClock } from '../../src/base/clock.js'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configOptions } from '../../src/cli/flags.js'
import { moveFlags } from '../../src/cli/reshard-flags.js'
import type { CleanupReport } from '../../src/reshard/cleanup.js'

export default class ReshardCleanup extends BaseCommand {
  static override summary = 'Remove slots, publications and other things that a run left behind.'
  static override description =
    'Works after any death of a run, and as often as you like. Tables and rows of an unfinished run, and the fence of the old side after a cutover, are removed only when asked for.'
  static override examples = [
    '<%= config.bin %> reshard cleanup --from shop --to shop_new',
    '<%= config.bin %> reshard cleanup --from shop --to shop_new --drop-target',
  ]

  static override flags = {
    ...moveFlags,
    'drop-target': Flags.boolean({
      description: 'also drop everything that an unfinished run made on the targets',
      default: false,
    }),
    'lift-fence': Flags.boolean({
      description: 'let the old side be written again after a cutover',
      default: false,
    }),
  }

  async run(): Promise<CleanupReport> {
    const { flags } = await this.parse(ReshardCleanup)
    const { loadConfig } = await import('../../src/config/load-config.js')
    const { sidesOf } = await import('../../src/reshard/buckets/bucket-sides.js')
    const { cleanupRun } = await import('../../src/reshard/cleanup.js')
    const config = loadConfig(configOptions(flags))
    const report = await cleanupRun({
      ...sidesOf(config, flags.from, flags.to),
      clock: systemClock,
      dropTarget: flags['drop-target'],
      liftFence: flags['lift-fence'],
    })
    for (const one of report.removed) this.log(`removed: ${one}`)
    for (const one of report.kept) this.log(`kept: ${one}`)
    if (report.removed.length + report.kept.length === 0) this.log('nothing was left')
    return report
  }
}
