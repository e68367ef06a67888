/** `pgshard advise`: which keys to shard by, from a schema and a workload. */
import { existsSync, writeFileSync } from 'node:fs'
import { Flags } from '@oclif/core'
import type { AdviceReport } from '../src/advise/report.js'
import { BaseCommand } from '../src/cli/base-command.js'
import { renderTable } from '../src/cli/render.js'
import { engineError } from '../src/errors/engine-error.js'

export default class Advise extends BaseCommand {
  static override summary = 'Propose the keys to shard by, from a schema and a workload.'
  static override description =
    'Columns that the workload asks for and joins by become candidates; the router of serve then says of every statement where it would go under each. The schema is a file of SQL (pg_dump --schema-only) or a database; the workload a file of SQL, a csvlog of PostgreSQL, or pg_stat_statements of a database. Where values are not known ($1 of pg_stat_statements), made-up ones of the right type stand for them. A database is only read, and tables are sampled: at most 100,000 rows of each.'
  static override examples = [
    '<%= config.bin %> advise --schema schema.sql --workload queries.sql',
    '<%= config.bin %> advise --schema schema.sql --workload postgresql.csv --format csvlog --database shop',
    "<%= config.bin %> advise --workload 'postgres://admin@10.0.0.1/shop' --shards 8 --out pgdog.toml",
    "<%= config.bin %> advise --schema 'postgres://admin@10.0.0.1/shop' --workload queries.sql --json",
  ]

  static override flags = {
    schema: Flags.string({
      description: 'file of CREATE statements, or a database; default: that of --workload',
      helpValue: 'FILE|URL',
    }),
    workload: Flags.string({
      description: 'file of statements, or a database with pg_stat_statements',
      required: true,
      helpValue: 'FILE|URL',
    }),
    format: Flags.string({
      description: 'what the workload file is; default: csvlog when it ends in .csv, else sql',
      options: ['sql', 'csvlog'],
    }),
    database: Flags.string({
      description:
        'name of the database in the configuration, and whose lines of a csvlog count; default: the name in the URL, else app',
      helpValue: 'NAME',
    }),
    shards: Flags.integer({
      description: 'number of shards to judge with',
      default: 4,
      min: 2,
      max: 1024,
      helpValue: 'N',
    }),
    'search-path': Flags.string({
      default: 'public',
      description: 'schemas in which names are looked up, with commas between',
    }),
    'c-collation': Flags.boolean({
      description: 'the collation of a schema file is C: texts can be put in order by the proxy',
      default: false,
    }),
    key: Flags.string({
      description: 'the candidate to show in full and to write; default: the best',
      helpValue: 'NAME',
    }),
    out: Flags.string({
      description: 'write the configuration of that candidate to a file; - prints it',
      helpValue: 'FILE',
    }),
    force: Flags.boolean({ description: 'overwrite the file of --out', default: false }),
  }

  async run(): Promise<AdviceReport> {
    const { flags } = await this.parse(Advise)
    const { out } = flags
    if (out !== undefined && out !== '-' && !flags.force && existsSync(out)) {
      throw engineError('USAGE', { message: `${out} is there already: add --force` })
    }
    const { runAdvise } = await import('../src/advise/run-advise.js')
    const { adviceText } = await import('../src/advise/report-text.js')
    const progress = this.progress()
    try {
      const { report, config } = await runAdvise({
        schema: flags.schema,
        workload: flags.workload,
        format: flags.format as 'sql' | 'csvlog' | undefined,
        database: flags.database,
        shards: flags.shards,
        searchPath: flags['search-path'].split(',').map((name) => name.trim()),
        isBytewise: flags['c-collation'],
        key: flags.key,
        onNote: (text) => this.note(`note: ${text}`),
        bar: (label, unit, total) => progress.bar({ label, unit, ...(total ? { total } : {}) }),
      })
      for (const note of report.notes) this.note(`note: ${note}`)
      this.log(adviceText(report, renderTable))
      if (config !== undefined) this.#write(out, config)
      return report
    } finally {
      progress.close()
    }
  }

  #write(path: string | undefined, config: string): void {
    if (path === undefined)
      return this.note('Next: the same with --out pgdog.toml writes the configuration')
    if (path === '-') return this.log(config)
    writeFileSync(path, config)
    this.note(
      `wrote ${path}. Next: put in the addresses, then pgshard config check --config ${path}`,
    )
  }
}
