import { Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'

export default class ClusterStop extends BaseCommand {
  static override description = 'Stop the servers of a cluster. The data stays.'

  static override examples = ['<%= config.bin %> cluster stop --dir ./.pgshard']

  static override flags = {
    dir: Flags.string({ default: '.pgshard', description: 'where the cluster lives' }),
  }

  async run(): Promise<{ stopped: number }> {
    const { flags } = await this.parse(ClusterStop)
    const { stopCluster } = await import('../../src/cluster/cluster.js')
    const stopped = await stopCluster(flags.dir)
    this.log(stopped === 0 ? 'no server was running' : `stopped ${stopped} servers`)
    return { stopped }
  }
}
