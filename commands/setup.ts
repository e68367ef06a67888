/** `pgshard setup`: our schema on each shard. */
import { Flags } from '@oclif/core'
import { BaseCommand } from '../src/cli/base-command.js'
import { configFlags, configOptions } from '../src/cli/flags.js'
import { renderTable } from '../src/cli/render.js'
import type { DropReport } from '../src/setup/drop-setup.js'
import type { SetupReport } from '../src/setup/run-setup.js'

export default class Setup extends BaseCommand {
  static override summary = 'Make schema pgshard on each shard.'
  static override description =
    'Decisions of transactions over shards, shard ids, checkpoints and heartbeats are kept in the databases, in schema pgshard. Sequences behind sharded tables are made disjoint. Idempotent: run it again after each change of the configuration.'
  static override examples = [
    '<%= config.bin %> setup --config pgdog.toml --database shop',
    '<%= config.bin %> setup --database shop --guards --dry-run',
    '<%= config.bin %> setup --database shop --drop',
  ]

  static override flags = {
    ...configFlags,
    database: Flags.string({
      description: 'the database; not needed when there is one',
      helpValue: 'NAME',
    }),
    username: Flags.string({
      char: 'U',
      description: 'connect as this user instead of the one configured',
      helpValue: 'NAME',
    }),
    password: Flags.string({
      description: 'its password',
      env: 'PGPASSWORD',
      dependsOn: ['username'],
      helpValue: 'TEXT',
    }),
    guards: Flags.boolean({
      description:
        'also make CHECK constraints that keep every row on its shard, whoever writes it',
      exclusive: ['drop'],
      default: false,
    }),
    'dry-run': Flags.boolean({
      description: 'print the SQL and the grants, change nothing',
      default: false,
    }),
    drop: Flags.boolean({
      description: 'remove guards and schema; needs --database',
      default: false,
    }),
  }

  async run(): Promise<object> {
    const { flags } = await this.parse(Setup)
    const { prepareSetup } = await import('../src/setup/prepare-setup.js')
    const { loadConfig } = await import('../src/config/load-config.js')
    const config = loadConfig(configOptions(flags))
    const ready = prepareSetup(config, {
      database: flags.database,
      username: flags.username,
      password: flags.password,
      guards: flags.guards,
      dryRun: flags['dry-run'],
      drop: flags.drop,
    })
    const report = await ready.run()
    this.#print(report)
    return jsonOf(report)
  }

  #print(report: SetupReport | DropReport): void {
    if (report.dryRun) {
      for (const { shard, sql } of report.shards) this.log(`-- shard ${shard}\n${sql}`)
    } else if ('clusterId' in report) {
      const rows = report.shards.map((one) => [
        one.shard,
        one.id,
        one.fromVersion === one.toVersion ? 'up to date' : 'made',
        one.toVersion,
      ])
      this.log(renderTable(['shard', 'id', 'schema pgshard', 'version'], rows))
      this.#list('grants for', report.roles)
      this.#list('sequences made disjoint:', report.sequences.changed)
      this.#list('guards made:', report.guards.changed)
      this.log(`\nNext: pgshard serve`)
    } else {
      this.log(`removed schema pgshard from ${report.shards.length} shards of ${report.database}`)
    }
    const constraints = 'clusterId' in report ? report.constraints : []
    for (const note of [...constraints, ...report.notes]) this.note(`note: ${note}`)
  }

  #list(what: string, names: readonly string[]): void {
    if (names.length > 0) this.log(`${what} ${names.join(', ')}`)
  }
}

/** The names of fields in JSON are lower case with underscores, as everywhere. */
function jsonOf(report: SetupReport | DropReport): object {
  const { database, dryRun, notes } = report
  if (!('clusterId' in report)) {
    return { database, dry_run: dryRun, dropped: !dryRun, shards: report.shards, notes }
  }
  return {
    database,
    dry_run: dryRun,
    cluster_id: report.clusterId,
    shards: report.shards.map(({ shard, id, fromVersion, toVersion, sql }) => ({
      shard,
      id,
      from_version: fromVersion,
      to_version: toVersion,
      sql,
    })),
    roles: report.roles,
    sequences: report.sequences,
    guards: report.guards,
    constraints: report.constraints,
    notes,
  }
}
