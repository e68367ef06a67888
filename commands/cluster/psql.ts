import { Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'

export default class ClusterPsql extends BaseCommand {
  static override enableJsonFlag = false

  static override description =
    'Open a shell on a server of a cluster: psql when it is installed, a small prompt of our own otherwise.'

  static override examples = [
    '<%= config.bin %> cluster psql --shard 1',
    "<%= config.bin %> cluster psql -c 'select count(*) from orders'",
  ]

  static override flags = {
    dir: Flags.string({ default: '.pgshard', description: 'where the cluster lives' }),
    shard: Flags.integer({ default: 0, min: 0, description: 'number of the shard' }),
    replica: Flags.integer({ default: 0, min: 0, description: 'its n-th replica; 0: the primary' }),
    database: Flags.string({ char: 'd', description: "another database than the cluster's" }),
    command: Flags.string({
      char: 'c',
      multiple: true,
      multipleNonGreedy: true,
      description: 'run this statement and end',
    }),
    builtin: Flags.boolean({ description: 'our own prompt, also where psql is installed' }),
  }

  async run(): Promise<void> {
    const { flags } = await this.parse(ClusterPsql)
    const { openPsql } = await import('../../src/cluster/open-psql.js')
    const code = await openPsql({
      directory: flags.dir,
      shard: flags.shard,
      replica: flags.replica,
      database: flags.database,
      commands: flags.command ?? [],
      builtin: flags.builtin,
      environment: process.env,
      streams: { input: process.stdin, output: process.stdout, errors: process.stderr },
    })
    if (code !== 0) this.exit(code)
  }
}
