/** `pgshard reshard set`: limits of a run, changed while it works. */
import { Args } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configOptions } from '../../src/cli/flags.js'
import { moveFlags } from '../../src/cli/reshard-flags.js'

export default class ReshardSet extends BaseCommand {
  static override summary = 'Change a limit of the run that is under way.'
  static override description =
    'The run reads it within a second, on whatever machine it is. Settings: max_rate (20MB), max_wal_kept (64GB), wal_action (abort, pause), max_source_latency (200ms), max_replica_lag (10s); off takes a limit away.'
  static override examples = [
    '<%= config.bin %> reshard set --from shop --to shop_new max_rate 20MB',
  ]
  static override args = {
    name: Args.string({ description: 'setting', required: true }),
    value: Args.string({ description: 'its new value', required: true }),
  }
  static override flags = moveFlags

  async run(): Promise<{ run: string; name: string; value: string }> {
    const { args, flags } = await this.parse(ReshardSet)
    const { loadConfig } = await import('../../src/config/load-config.js')
    const { changeLimit } = await import('../../src/reshard/change-limit.js')
    const name = args.name.replaceAll('-', '_')
    const config = loadConfig(configOptions(flags))
    const run = await changeLimit(config, flags, { name, value: args.value })
    this.log(`run ${run}: ${name} is ${args.value}`)
    return { run, name, value: args.value }
  }
}
