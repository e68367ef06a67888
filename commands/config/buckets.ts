/** `pgshard config buckets`: the bucket map for more or fewer shards that moves the fewest rows. */
import { Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configFlags, configOptions } from '../../src/cli/flags.js'
import { renderTable } from '../../src/cli/render.js'
import type { TableProposal } from '../../src/config/propose-for-database.js'

export default class ConfigBuckets extends BaseCommand {
  static override summary = 'Propose the bucket map for more or fewer shards.'
  static override description =
    'Buckets are multiplied where there are too few, which moves nothing; then the new shards get their share, and only that moves; with fewer shards the last ones give theirs to the others. Prints lines for [[sharded_tables]]; changes no file.'
  static override examples = [
    '<%= config.bin %> config buckets --config pgdog.toml --database shop --to 6',
    '<%= config.bin %> config buckets --to 8 --json',
  ]

  static override flags = {
    ...configFlags,
    database: Flags.string({
      description: 'the database; not needed when there is one',
      helpValue: 'NAME',
    }),
    to: Flags.integer({
      description: 'number of shards wanted',
      required: true,
      min: 1,
      max: 65_535,
      helpValue: 'K',
    }),
  }

  async run(): Promise<{ database: string; shards: number; tables: readonly TableProposal[] }> {
    const { flags } = await this.parse(ConfigBuckets)
    const { loadConfig } = await import('../../src/config/load-config.js')
    const { proposeFor } = await import('../../src/config/propose-for-database.js')
    const config = loadConfig(configOptions(flags))
    const proposal = proposeFor(config, flags.database, flags.to)
    for (const table of proposal.tables) this.#print(table)
    return proposal
  }

  #print(table: TableProposal): void {
    const percent = ((table.moved * 100) / table.buckets).toFixed(1)
    this.log(
      `# ${table.table}: ${table.moved} of ${table.buckets} buckets move (${percent} % of the rows)`,
    )
    if (!table.pgdogCompatible)
      this.log('# not PgDog-compatible: PgDog places by hash modulo shards')
    this.log(`buckets = ${table.buckets}`)
    this.log(`bucket_map = [${table.bucketMap.join(', ')}]`)
    const rows = table.perShard.map(({ shard, before, after }) => [shard, before, after])
    this.log(renderTable(['shard', 'buckets now', 'buckets then'], rows))
  }
}
