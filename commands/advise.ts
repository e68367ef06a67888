/** `pgshard advise`: which keys to shard by, from a schema and a workload. */
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { Flags } from '@oclif/core'
import type { Advice } from '../src/advise/advise.js'
import type { AdviceReport } from '../src/advise/report.js'
import type { Workload } from '../src/advise/workload/workload.js'
import type { Catalog } from '../src/catalog/catalog.js'
import type { Query } from '../src/catalog/read-catalog.js'
import { BaseCommand } from '../src/cli/base-command.js'
import type { ProgressBoard } from '../src/cli/progress.js'
import { renderTable } from '../src/cli/render.js'
import { engineError } from '../src/errors/engine-error.js'

/** A connection string rather than a file. */
const isUrl = (text: string): boolean =>
  /^postgres(?:ql)?:\/\//.test(text) || (/^\s*\w+\s*=/.test(text) && !existsSync(text))

interface AdviseFlags {
  readonly workload: string
  readonly format?: string | undefined
  readonly database?: string | undefined
  readonly shards: number
  readonly 'search-path': string
  readonly 'c-collation': boolean
  readonly key?: string | undefined
  readonly out?: string | undefined
}

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
    const schema = flags.schema ?? (isUrl(flags.workload) ? flags.workload : undefined)
    if (schema === undefined) {
      throw engineError('USAGE', { message: 'give the schema: --schema FILE or --schema URL' })
    }
    if (flags.out !== undefined && flags.out !== '-' && !flags.force && existsSync(flags.out)) {
      throw engineError('USAGE', { message: `${flags.out} is there already: add --force` })
    }
    const databases = new Databases()
    const progress = this.progress()
    try {
      return await this.#advise(flags, schema, databases, progress)
    } finally {
      progress.close()
      await databases.close()
    }
  }

  async #advise(
    flags: AdviseFlags,
    schema: string,
    databases: Databases,
    progress: ProgressBoard,
  ): Promise<AdviceReport> {
    const { advise } = await import('../src/advise/advise.js')
    const { adviceReport } = await import('../src/advise/report.js')
    const { readSkew } = await import('../src/advise/skew.js')
    const { writeConfig } = await import('../src/advise/write-config.js')
    const searchPath = flags['search-path'].split(',').map((name) => name.trim())
    const catalog = await this.#catalog(schema, flags['c-collation'], databases)
    const workload = await this.#workload(flags, databases, progress)
    const bar = progress.bar({ label: 'judging', unit: 'shardings' })
    const advice = await advise(catalog, workload, {
      shards: flags.shards,
      searchPath,
      onJudged: (done, total) => {
        bar.setTotal(total)
        bar.update(done)
      },
    })
    bar.finish()
    const chosen = chooseKey(advice, flags.key)
    const query = isUrl(schema) && chosen ? await databases.query(schema) : undefined
    const skew = query && chosen ? await readSkew(chosen, query) : undefined
    const database = flags.database ?? databases.name ?? 'app'
    const report = adviceReport(advice, chosen, skew, flags.shards)
    this.#print(report)
    if (chosen && flags.out !== undefined) {
      this.#write(flags.out, writeConfig(chosen, { database }))
    } else if (chosen) this.note('Next: the same with --out pgdog.toml writes the configuration')
    return report
  }

  async #catalog(schema: string, isBytewise: boolean, databases: Databases): Promise<Catalog> {
    if (isUrl(schema)) {
      const { readCatalog } = await import('../src/catalog/read-catalog.js')
      return readCatalog(await databases.query(schema))
    }
    const { readSchema } = await import('../src/advise/schema/read-schema.js')
    const { catalog, unread } = await readSchema(readText(schema), isBytewise)
    for (const { line, message } of unread) {
      this.note(`note: ${schema}:${line}: PostgreSQL rejects the statement: ${message}`)
    }
    return catalog
  }

  async #workload(
    flags: AdviseFlags,
    databases: Databases,
    progress: ProgressBoard,
  ): Promise<Workload> {
    const read = await import('../src/advise/workload/read-workload.js')
    const { workload: path } = flags
    if (isUrl(path)) return read.readStatStatements(await databases.query(path))
    const format = flags.format ?? (path.endsWith('.csv') ? 'csvlog' : 'sql')
    if (format === 'sql') return read.readSqlWorkload(readText(path))
    const bar = progress.bar({ label: path, unit: 'bytes', total: sizeOf(path) })
    const found = await read.readCsvlog(path, flags.database, (done) => bar.update(done))
    bar.finish()
    return found
  }

  #print(report: AdviceReport): void {
    const { workload, candidates, chosen } = report
    this.log(
      `${workload.statements} statements (${workload.calls} calls) over ${report.tables} tables, judged for ${report.shards} shards`,
    )
    for (const note of report.notes) this.note(`note: ${note}`)
    if (candidates.length === 0) {
      this.log('no candidate: the workload asks for no column by its value')
      return
    }
    const percent = (part: number): string => `${((part * 100) / workload.calls).toFixed(1)} %`
    const rows = candidates.map(({ key, score, calls }) => [
      key,
      score.toFixed(3),
      ...report.fates.map((fate) => percent(calls[fate])),
    ])
    this.log(renderTable(['key', 'score', ...report.fates.map((fate) => headings[fate])], rows))
    if (chosen) this.#printChosen(chosen)
  }

  #printChosen(chosen: NonNullable<AdviceReport['chosen']>): void {
    this.log(`sharded by ${chosen.key}:`)
    for (const { table, column, data_type } of chosen.sharded_tables)
      this.log(`  ${table} by ${column} (${data_type})`)
    const copies = chosen.reference_tables
    this.log(`on every shard: ${copies.length === 0 ? 'no table' : copies.join(', ')}`)
    const reasons = chosen.reasons.slice(0, 12)
    if (reasons.length > 0) this.log('not on one shard:')
    for (const { fate, calls, reason } of reasons) this.log(`  ${calls} × ${fate}: ${reason}`)
    for (const one of chosen.constraints) this.log(`no shard can keep ${one}`)
    if (!chosen.skew) return
    const rows = chosen.skew.map((one) => [
      one.table,
      one.sampled_rows,
      one.distinct_keys,
      `${(one.largest_key_share * 100).toFixed(1)} %`,
      one.skew.toFixed(2),
      one.rows_per_shard.join(' '),
    ])
    const header = ['table', 'rows seen', 'keys', 'largest key', 'fullest / even', 'rows per shard']
    this.log(`\n${renderTable(header, rows)}`)
  }

  #write(path: string, text: string): void {
    if (path === '-') return this.log(text)
    writeFileSync(path, text)
    this.note(
      `wrote ${path}. Next: put in the addresses, then pgshard config check --config ${path}`,
    )
  }
}

const headings = {
  one: 'one shard',
  any: 'any shard',
  scatter: 'scatter',
  split: 'split',
  gather: 'gather',
  everywhere: 'every shard',
  refused: 'refused',
} as const

function chooseKey(
  advice: Advice,
  wanted: string | undefined,
): Advice['candidates'][number] | undefined {
  if (wanted === undefined) return advice.candidates[0]
  const found = advice.candidates.find(({ key }) => key === wanted)
  if (found) return found
  const known = advice.candidates.map(({ key }) => key).join(', ')
  throw engineError('USAGE', { message: `no candidate is called "${wanted}", only ${known}` })
}

function readText(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error)
    throw engineError('FILE_MISSING', { path, reason }, { cause: error })
  }
}

function sizeOf(path: string): number {
  try {
    return statSync(path).size
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error)
    throw engineError('FILE_MISSING', { path, reason }, { cause: error })
  }
}

/** One read-only connection for each database that was named. */
class Databases {
  readonly #open = new Map<string, { query: Query; close: () => Promise<void> }>()
  /** Of the first one. */
  name: string | undefined

  async query(url: string): Promise<Query> {
    const known = this.#open.get(url)
    if (known) return known.query
    const { connectPg } = await import('../src/pg/connect.js')
    const { adminQuery, adminRows, closePg } = await import('../src/pg/admin-query.js')
    const client = await connectPg(url)
    const query: Query = (sql) => adminRows(client, sql)
    this.#open.set(url, { query, close: () => closePg(client) })
    await adminQuery(
      client,
      "SET default_transaction_read_only = on; SET statement_timeout = '60s'",
    )
    this.name ??= (await query('SELECT pg_catalog.current_database()'))[0]?.[0] ?? undefined
    return query
  }

  async close(): Promise<void> {
    for (const { close } of this.#open.values()) await close()
  }
}
