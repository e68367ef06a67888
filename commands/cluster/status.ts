import { Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'
import { formatBytes, renderTable } from '../../src/cli/render.js'

export default class ClusterStatus extends BaseCommand {
  static override description =
    'Show the servers of a cluster, what runs and how far replicas are behind.'

  static override examples = [
    '<%= config.bin %> cluster status',
    '<%= config.bin %> cluster status --json',
  ]

  static override flags = {
    dir: Flags.string({ default: '.pgshard', description: 'where the cluster lives' }),
  }

  async run(): Promise<object> {
    const { flags } = await this.parse(ClusterStatus)
    const { clusterStatus, publicCluster } = await import('../../src/cluster/cluster.js')
    const { cluster, servers } = await clusterStatus(flags.dir)
    const shown = {
      ...publicCluster(cluster),
      servers: publicCluster({ ...cluster, servers }).servers,
    }
    const bytes = (value: number | undefined) => (value === undefined ? '' : formatBytes(value))
    const rows = servers.map((server, index) => [
      server.name,
      server.actualRole ?? server.role,
      server.state,
      server.pid === undefined ? '' : String(server.pid),
      bytes(server.sizeBytes),
      bytes(server.lagBytes),
      shown.servers[index]!.url,
    ])
    this.log(`PostgreSQL ${cluster.version} in ${cluster.directory}\n`)
    this.log(renderTable(['server', 'role', 'state', 'pid', 'size', 'lag', 'url'], rows).trimEnd())
    return shown
  }
}
