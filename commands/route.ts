/** `pgshard route`: where a statement would go, and why, without running it. */
import { readFileSync } from 'node:fs'
import { Args, Flags } from '@oclif/core'
import { BaseCommand } from '../src/cli/base-command.js'
import { configFlags, configOptions } from '../src/cli/flags.js'
import { engineError } from '../src/errors/engine-error.js'
import type { RouteDescription } from '../src/routing/describe-route.js'

export default class Route extends BaseCommand {
  static override summary = 'Show where a statement would go, and why, without running it.'
  static override description =
    'Reads the configuration only and asks no server: tables are those that the configuration names, others follow its rule for them. Several statements give one line each; `--verbose` shows the texts that shards are sent. A statement that would be refused is an answer too: exit code 0.'
  static override examples = [
    "<%= config.bin %> route --config pgdog.toml --database app 'SELECT * FROM users WHERE id = 42'",
    "<%= config.bin %> route --database app --param 42 --json 'SELECT * FROM users WHERE id = $1'",
    '<%= config.bin %> route --database app --file queries.sql --json',
  ]

  static override args = {
    sql: Args.string({ description: 'the statement; several are separated by semicolons' }),
  }

  static override flags = {
    ...configFlags,
    database: Flags.string({ description: 'database of the configuration; default: its only one' }),
    param: Flags.string({
      multiple: true,
      multipleNonGreedy: true,
      description: 'value of $1, $2, … in text form; repeat it',
      helpValue: 'VALUE',
    }),
    file: Flags.string({
      char: 'f',
      description: 'read the statements from a file',
      helpValue: 'FILE',
    }),
    'search-path': Flags.string({
      default: 'public',
      description: 'schemas in which names are looked up, with commas between',
    }),
  }

  async run(): Promise<RouteDescription | undefined> {
    void import('../src/routing/parser-ahead.js').then(({ startParser }) => startParser())
    const { args, flags } = await this.parse(Route)
    const sql = readSql(args.sql, flags.file)
    const [
      { loadConfig },
      { openQueryPlanner },
      { plannerOptions },
      { describeRoutes, textParameters },
    ] = await Promise.all([
      import('../src/config/load-config.js'),
      import('../src/routing/query-planner.js'),
      import('../src/routing/planner-options.js'),
      import('../src/routing/describe-route.js'),
    ])
    const config = loadConfig(configOptions(flags))
    const database = chooseDatabase([...config.sharding.keys()], flags.database)
    const planner = await openQueryPlanner({
      sharding: config.sharding.get(database)!,
      ...plannerOptions(config, database),
    })
    const searchPath = flags['search-path'].split(',').map((schema) => schema.trim())
    const parameters = textParameters(flags.param ?? [])
    const routes = describeRoutes(planner, sql, parameters, { searchPath }, this.verbose)
    for (const route of routes) this.log(render(route))
    for (const route of routes.slice(0, -1)) this.emit(route)
    return routes.at(-1)
  }
}

function readSql(text: string | undefined, file: string | undefined): string {
  if ((text === undefined) === (file === undefined)) {
    throw engineError('USAGE', {
      message: 'give either a statement or --file (/dev/stdin reads standard input)',
    })
  }
  if (text !== undefined) return text
  try {
    return readFileSync(file!, 'utf8')
  } catch (error) {
    const reason = (error as NodeJS.ErrnoException).code ?? String(error)
    throw engineError('FILE_MISSING', { path: file!, reason }, { cause: error })
  }
}

function chooseDatabase(names: readonly string[], wanted: string | undefined): string {
  if (wanted !== undefined && names.includes(wanted)) return wanted
  if (wanted === undefined && names.length === 1) return names[0]!
  const message =
    wanted === undefined
      ? `the configuration has several databases: name one of ${names.join(', ')} with --database`
      : `the configuration has no database "${wanted}", only ${names.join(', ')}`
  throw engineError('USAGE', { message })
}

function render(route: RouteDescription): string {
  const where = {
    none: 'no shard',
    one: route.any_shard ? 'any shard' : `shard ${route.shards.join()}`,
    some: `shards ${route.shards.join(', ')}`,
    all: 'all shards',
  }[route.target]
  const lines = [`${route.how}: ${where} (${route.kind}, ${route.role})`]
  for (const reason of route.reasons) lines.push(`  ${reason}`)
  for (const { shards, sql } of route.texts ?? []) {
    lines.push(`  to shard${shards.length > 1 ? 's' : ''} ${shards.join(', ')}: ${sql}`)
  }
  if (route.error?.hint) lines.push(`  hint: ${route.error.hint}`)
  return lines.join('\n')
}
