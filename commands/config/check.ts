/** `pgshard config check`: everything that is wrong with a configuration, at once. */
import { BaseCommand } from '../../src/cli/base-command.js'
import { configFlags, configOptions } from '../../src/cli/flags.js'

export interface CheckResult {
  readonly ok: true
  readonly databases: readonly {
    readonly name: string
    readonly shards: number
    readonly hosts: number
  }[]
  readonly users: number
  readonly warnings: readonly string[]
}

export default class ConfigCheck extends BaseCommand {
  static override summary = 'Check pgdog.toml and users.toml, without connecting to anything.'
  static override description =
    'Prints every problem with its file and line and exits with 3; warnings alone exit with 0.'
  static override examples = [
    '<%= config.bin %> config check',
    '<%= config.bin %> config check --config pgdog.toml --users users.toml',
  ]

  static override flags = { ...configFlags }

  async run(): Promise<CheckResult> {
    const { flags } = await this.parse(ConfigCheck)
    const { loadConfig } = await import('../../src/config/load-config.js')
    const config = loadConfig(configOptions(flags))
    for (const warning of config.warnings) this.note(`warning: ${warning}`)
    const databases = config.databases.map(({ name, shards }) => ({
      name,
      shards: shards.length,
      hosts: shards.reduce((sum, shard) => sum + shard.hosts.length, 0),
    }))
    for (const { name, shards, hosts } of databases)
      this.log(`database "${name}": ${plural(shards, 'shard')}, ${plural(hosts, 'host')}`)
    this.log(`${plural(config.users.length, 'user')}, ${plural(config.warnings.length, 'warning')}`)
    return { ok: true, databases, users: config.users.length, warnings: config.warnings }
  }
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
