/** `pgshard config check`: everything that is wrong with a configuration, at once; with `--connect` what its databases cannot keep. */
import { Flags } from '@oclif/core'
import { BaseCommand } from '../../src/cli/base-command.js'
import { configFlags, configOptions } from '../../src/cli/flags.js'
import type { SetupConfig } from '../../src/setup/prepare-setup.js'

export interface CheckResult {
  readonly ok: true
  readonly databases: readonly {
    readonly name: string
    readonly shards: number
    readonly hosts: number
  }[]
  readonly users: number
  readonly warnings: readonly string[]
  /** With `--connect`: constraints that do not hold over shards by themselves. */
  readonly constraints?: readonly { readonly database: string; readonly text: string }[]
}

export default class ConfigCheck extends BaseCommand {
  static override summary =
    'Check pgdog.toml and users.toml, without connecting to anything unless asked to.'
  static override description =
    'Prints every problem with its file and line and exits with 3; warnings alone exit with 0.'
  static override examples = [
    '<%= config.bin %> config check',
    '<%= config.bin %> config check --config pgdog.toml --users users.toml',
    '<%= config.bin %> config check --connect',
  ]

  static override flags = {
    ...configFlags,
    connect: Flags.boolean({
      description: 'also list the constraints of sharded tables that no shard can keep by itself',
      default: false,
    }),
  }

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
    const found = flags.connect ? { constraints: await this.#constraints(config) } : {}
    return { ok: true, databases, users: config.users.length, warnings: config.warnings, ...found }
  }

  async #constraints(config: SetupConfig): Promise<{ database: string; text: string }[]> {
    const { prepareSetup } = await import('../../src/setup/prepare-setup.js')
    const found: { database: string; text: string }[] = []
    for (const { name } of config.databases) {
      if ((config.sharding.get(name)?.shardCount ?? 1) < 2) continue
      const request = { database: name, guards: false, dryRun: true, drop: false }
      const report = await prepareSetup(config, request).run()
      if (!('clusterId' in report)) continue
      for (const text of report.constraints) {
        found.push({ database: name, text })
        this.log(`database "${name}": ${text}`)
      }
    }
    return found
  }
}

const plural = (count: number, noun: string): string => `${count} ${noun}${count === 1 ? '' : 's'}`
