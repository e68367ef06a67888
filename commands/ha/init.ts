import { Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configFlags } from '../../src/cli/flags.js'
import { haConfigOf } from '../../src/cli/ha-flags.js'

export default class HaInit extends BaseCommand {
  static override summary = 'Make the tables of HA groups, and the functions for PL/Proxy.'
  static override description =
    'In the state database: ha_config, function_route, and plproxy.get_cluster_version, _config and _partitions, so that a PL/Proxy node follows the same groups. On each node: xdual, which probers write. Idempotent; a route that was switched stays switched.'
  static override examples = [
    '<%= config.bin %> ha init --config pgdog.toml',
    '<%= config.bin %> ha init --dry-run',
    '<%= config.bin %> ha init --drop',
  ]

  static override flags = {
    ...configFlags,
    'dry-run': Flags.boolean({ description: 'print the SQL, change nothing', default: false }),
    drop: Flags.boolean({ description: 'remove what init made, routes included', default: false }),
  }

  async run(): Promise<object> {
    const { flags } = await this.parse(HaInit)
    const plan = await haConfigOf(flags)
    const { initGroups } = await import('../../src/ha/init-groups.js')
    const { dryRun, dropped, steps, notes } = await initGroups({
      plan,
      routes: plan.routes,
      dryRun: flags['dry-run'],
      drop: flags.drop,
    })
    for (const { where, sql } of steps) this.log(dryRun ? `-- ${where}\n${sql}` : `ready: ${where}`)
    for (const note of notes) this.note(`note: ${note}`)
    if (!dryRun && !dropped) this.log('\nNext: pgshard ha watch')
    return { dry_run: dryRun, dropped, steps, notes }
  }
}
