import { Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'

export default class ClusterDestroy extends BaseCommand {
  static override description =
    'Stop the servers of a cluster and remove their data, with all that start made. Asks nothing.'

  static override examples = ['<%= config.bin %> cluster destroy']

  static override flags = {
    dir: Flags.string({ default: '.pgshard', description: 'where the cluster lives' }),
  }

  async run(): Promise<{ stopped: number; destroyed: true }> {
    const { flags } = await this.parse(ClusterDestroy)
    const { destroyCluster } = await import('../../src/cluster/cluster.js')
    const stopped = await destroyCluster(flags.dir)
    this.log(
      `destroyed the cluster in ${flags.dir}${stopped > 0 ? ` (${stopped} servers were running)` : ''}`,
    )
    return { stopped, destroyed: true }
  }
}
