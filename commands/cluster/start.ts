import { Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'
import { renderTable } from '../../src/cli/render.js'

export default class ClusterStart extends BaseCommand {
  static override description =
    'Start real PostgreSQL servers on this machine: N shards, each with its replicas. A cluster that was stopped is started again, one that runs is left as it is.'

  static override examples = [
    '<%= config.bin %> cluster start --shards 4',
    '<%= config.bin %> cluster start --shards 2 --replicas 1 --postgres-version 17 --base-port 5440',
  ]

  static override flags = {
    shards: Flags.integer({
      min: 1,
      max: 64,
      description: 'number of shards (2 for a new cluster)',
    }),
    replicas: Flags.integer({
      min: 0,
      max: 8,
      description: 'streaming replicas of each shard (none)',
    }),
    'postgres-version': Flags.integer({ min: 15, max: 18, description: 'major version (18)' }),
    'bin-dir': Flags.directory({
      exists: true,
      description: 'use the PostgreSQL installed there (a directory with postgres and initdb)',
    }),
    dir: Flags.string({ default: '.pgshard', description: 'where the cluster lives' }),
    'base-port': Flags.integer({
      min: 1024,
      max: 65000,
      description: 'port of the first server, the others follow (free ones are found)',
    }),
    database: Flags.string({ description: 'database made on every shard (app)' }),
    password: Flags.string({
      env: 'PGSHARD_CLUSTER_PASSWORD',
      description: 'password of the superuser; without one everyone on this machine is trusted',
    }),
  }

  async run(): Promise<object> {
    const { flags } = await this.parse(ClusterStart)
    const { startCluster, publicCluster } = await import('../../src/cluster/cluster.js')
    const cluster = await startCluster({
      directory: flags.dir,
      shards: flags.shards,
      replicas: flags.replicas,
      postgresVersion: flags['postgres-version'],
      binDirectory: flags['bin-dir'],
      basePort: flags['base-port'],
      database: flags.database,
      password: flags.password,
      onNote: (note) => this.note(note),
    })
    const shown = publicCluster(cluster)
    const rows = shown.servers.map(({ name, role, url }) => [name, role, url])
    this.log(`PostgreSQL ${cluster.version}, ${rows.length} servers\n`)
    this.log(renderTable(['server', 'role', 'url'], rows))
    this.log(`Configuration for the proxy: ${cluster.files.slice(1).join(', ')}`)
    this.log(`Addresses for scripts:       ${cluster.files[0]}\n`)
    const suffix = flags.dir === '.pgshard' ? '' : ` --dir ${flags.dir}`
    this.log('Next:')
    this.log(`  pgshard cluster psql${suffix}        a shell on the first shard`)
    this.log(`  pgshard serve --config ${cluster.files[1]} --users ${cluster.files[2]}`)
    this.log(`  pgshard cluster stop${suffix}        the data stays; destroy removes it`)
    return shown
  }
}
