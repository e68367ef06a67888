/** `pgshard copy-shard`: files or standard input into the shards of a table, rows placed by their sharding key. */
import { Args, Flags } from '@oclif/core'
import { BaseCommand } from '../src/cli/base-command.js'
import { findShards, renderLoad, watchLoad } from '../src/cli/copy-shard-io.js'
import { configFlags, keyTypeFlag } from '../src/cli/flags.js'

/** Exit code: rows were left out. */
const PARTLY_DONE = 6

const compressions = ['auto', 'none', 'gzip', 'zstd'] as const

export default class CopyShard extends BaseCommand {
  static override summary =
    'Load files into the shards of a table, each row by its sharding key; or export a table.'
  static override description =
    'Reads csv, text and binary COPY data as PostgreSQL does and streams it into every shard at once, in batches that are committed with a checkpoint; --resume goes on behind them, --single-transaction loads all or nothing (docs/copy.md).'

  static override examples = [
    '<%= config.bin %> copy-shard users.csv --config pgdog.toml --database app --table users --header',
    '<%= config.bin %> copy-shard - --target postgres://a/app --target postgres://b/app --table users --sharding-key id --format csv',
    "<%= config.bin %> copy-shard 'dump/*.csv.gz' --config pgdog.toml --database app --table orders --jobs 2 --verify",
    '<%= config.bin %> copy-shard --out users.csv --config pgdog.toml --database app --table users --header --order-by id',
  ]

  static override args = {
    file: Args.string({
      multiple: true,
      required: false,
      description: 'files, patterns, or - for standard input; none with --out',
    }),
  }

  static override flags = {
    ...configFlags,
    database: Flags.string({ description: 'database of the configuration' }),
    target: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      exclusive: ['database', 'config', 'users', 'database-url'],
      description: 'a shard, in order; repeat it (instead of a configuration)',
    }),
    'sharding-key': Flags.string({ dependsOn: ['target'], description: 'column to place rows by' }),
    'key-type': keyTypeFlag,
    map: Flags.string({
      dependsOn: ['sharding-key'],
      description: 'JSON file with the shard of each bucket, such as [0,1,0,1]',
    }),
    table: Flags.string({
      description: 'table, as SQL writes it; with --format pg_dump the file names them',
    }),
    columns: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: 'columns in the order of the data: a,b,c',
    }),
    format: Flags.string({
      options: ['csv', 'text', 'binary', 'pg_dump'],
      description: "format of the data (by the file's name, else csv)",
    }),
    header: Flags.boolean({
      description: 'the first line is a header; without --columns it names the columns',
    }),
    delimiter: Flags.string({ description: 'between columns; \\t is a tab' }),
    quote: Flags.string({ description: 'quote of csv' }),
    escape: Flags.string({ description: 'escape of csv' }),
    null: Flags.string({ description: 'what stands for NULL' }),
    encoding: Flags.string({ description: "encoding of the data (the server's)" }),
    'force-null': Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: 'columns in which a quoted null mark is NULL too',
    }),
    'force-not-null': Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: 'columns in which the null mark is text',
    }),
    compression: Flags.option({
      options: compressions,
      default: 'auto' as const,
      description: 'how the files are packed',
    })(),
    jobs: Flags.integer({
      min: 1,
      max: 64,
      default: 1,
      description:
        'files, or stretches of one file, loaded side by side, each with a connection per shard',
    }),
    'max-rate': Flags.string({ description: 'most bytes a second: 500kB, 20MB' }),
    'batch-size': Flags.string({
      exclusive: ['single-transaction', 'dry-run'],
      description: 'bytes of the input between two commits (256MB; 64MB with --reject-file)',
    }),
    resume: Flags.boolean({
      exclusive: ['single-transaction', 'dry-run'],
      description: 'go on behind what an earlier run of the same load has committed',
    }),
    'on-error': Flags.string({
      options: ['stop', 'reject'],
      default: 'stop',
      description: 'what a row at fault does: end the load, or go to --reject-file',
    }),
    'reject-file': Flags.string({
      exclusive: ['single-transaction', 'dry-run'],
      description: 'where rows at fault go as they were; FILE.reasons says why',
    }),
    'single-transaction': Flags.boolean({
      exclusive: ['dry-run'],
      description: 'all rows on all shards or none, by two-phase commit (needs pgshard setup)',
    }),
    out: Flags.string({
      exclusive: [
        ...['batch-size', 'resume', 'on-error', 'reject-file', 'single-transaction', 'dry-run'],
        ...['verify', 'jobs', 'max-rate', 'map', 'force-null', 'force-not-null'],
        ...['sharding-key', 'key-type'],
      ],
      description: 'export: the rows of all shards into this file (.gz: packed)',
    }),
    'order-by': Flags.string({
      dependsOn: ['out'],
      description: 'export in the order of this column (text by its bytes)',
    }),
    'dry-run': Flags.boolean({ description: 'only count: rows per shard and skew' }),
    verify: Flags.boolean({
      exclusive: ['dry-run'],
      description: 'count the rows of each shard before and after',
    }),
  }

  async run(): Promise<object> {
    const { args, flags } = await this.parse(CopyShard)
    const { copyShard } = await import('../src/load/copy-shard.js')
    const { loadJson } = await import('../src/load/load-report.js')
    const shards = await findShards(flags)
    const board = this.progress()
    using interrupt = this.interruptible('with a rollback of the batch')
    const watch = watchLoad(board, flags.table ?? 'dump', interrupt.soft, (line) => this.note(line))
    try {
      const report = await copyShard(args.file ?? [], flags, shards, watch)
      watch.finish()
      this.log(renderLoad(report).trimEnd())
      if ((report.inRejectFile ?? 0) > 0) process.exitCode = PARTLY_DONE
      return loadJson(report)
    } finally {
      board.close()
    }
  }
}
