/**
 * Writes docs/config.md, docs/errors.md, docs/metrics.md, docs/cli.md and the man page from what the program is built of; run after `npm run build`.
 * `--check` writes nothing and fails when a page is out of date.
 */
import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

const dist = (path) => import(pathToFileURL(`dist/src/${path}.js`).href)

const cell = (text) => String(text).replaceAll('|', '\\|').replaceAll('\n', ' ')
const row = (...cells) => `| ${cells.map(cell).join(' | ')} |`
const generated = '<!-- Written by scripts/write-reference.mjs; do not edit. -->'

function fallbackText(definition) {
  const { fallback } = definition
  if (definition.required) return 'required'
  if (fallback === undefined) return 'none'
  if (fallback === Number.POSITIVE_INFINITY) return 'unlimited'
  if (typeof fallback === 'object')
    return Object.keys(fallback).length === 0 ? 'empty' : `\`${JSON.stringify(fallback)}\``
  return fallback === '' ? 'empty' : `\`${fallback}\``
}

const typeNames = {
  milliseconds: 'ms',
  seconds: 's',
  boolean: 'true, false',
  strings: 'list of texts',
  integers: 'list of integers',
  value: 'key value',
  values: 'list of key values',
  vectors: 'list of vectors',
  headers: 'table of texts',
  tables: 'list of tables',
}

function typeText(definition) {
  if (definition.values) return definition.values.map((value) => `\`${value}\``).join(', ')
  const name = typeNames[definition.type] ?? definition.type
  if (definition.min === undefined && definition.max === undefined) return name
  return `${name}, ${definition.min ?? 0} to ${definition.max ?? '∞'}`
}

function meaning(section, key, definition, { effectOf }) {
  const effect = effectOf(section.name, key, definition)
  const notes = []
  if (effect === 'refused') notes.push('**Not supported yet**, refused at start.')
  if (effect === 'unused') notes.push(`Read and not used: ${definition.unused}.`)
  if (definition.own) notes.push('Ours, unknown to PgDog.')
  if (definition.alias) notes.push(`Also written \`${definition.alias}\`.`)
  return [definition.summary, ...notes].join(' ')
}

const places = {
  'users.toml': ['In `users.toml`.', ''],
  either: ['In either file.', ''],
  'pgdog.toml': [],
}

function sectionLines(section, sectionsModule) {
  const variables = Object.entries(section.keys).map(([key, definition]) =>
    sectionsModule.environmentName(section.name, key, definition),
  )
  const env = variables.some(Boolean)
  const name = section.list ? `[[${section.name}]]` : `[${section.name}]`
  const head = ['key', 'type', 'default', ...(env ? ['environment'] : []), 'counts', 'meaning']
  const rows = Object.entries(section.keys).map(([key, definition], i) =>
    row(
      `\`${key}\``,
      typeText(definition),
      fallbackText(definition),
      ...(env ? [variables[i] ? `\`${variables[i]}\`` : ''] : []),
      definition.takesEffect,
      meaning(section, key, definition, sectionsModule),
    ),
  )
  return [
    '',
    `## ${name}`,
    '',
    section.summary,
    '',
    ...places[section.file],
    row(...head),
    row(...head.map(() => '---')),
    ...rows,
  ]
}

/** The page of docs/config.md. */
export function configPage(sectionsModule) {
  const { configSections } = sectionsModule
  const lines = [
    '# Configuration',
    '',
    generated,
    '',
    '`pgdog.toml` and `users.toml`, with the keys of PgDog and ours. Without `--config` the `pgdog.toml` of the working directory is read, if it is there and no `-d` URL is given; without `--users` the `users.toml` beside it. Databases can also come from `-d postgres://user:password@host:port/name?shard=0&role=replica` and `PGDOG_DATABASE_URL_1`, `_2`, …; the parameters are the keys of `[[databases]]`.',
    '',
    'Times are whole milliseconds, sizes whole bytes; `9223372036854775807` is unlimited. The file wins over the environment, the environment over the default. Without any file the host is `127.0.0.1`, `load_balancing_strategy` is `round_robin`, and `read_write_split` is `exclude_primary` when there is a replica.',
    '',
    '`pgshard config check` names everything that is wrong, with file and line; `pgshard config show` prints every key and where its value comes from.',
    '',
    'Counts: *reload* at RELOAD or SIGHUP; *new connections* for those made after it; *restart* only then.',
  ]
  for (const section of configSections) lines.push(...sectionLines(section, sectionsModule))
  return `${lines.join('\n')}\n`
}

/** The page of docs/errors.md. */
export function errorsPage({ catalogue }) {
  const lines = [
    '# Errors',
    '',
    generated,
    '',
    'Every error that pgshard itself reports. To a client it goes as a PostgreSQL error with the SQLSTATE, and the code in the routine field (`\\errverbose` in psql shows it); a command prints it in one line with its hint and ends with the exit code. Errors of a server pass through as they are.',
    '',
    row('code', 'SQLSTATE', 'exit', 'message', 'what to do'),
    row('---', '---', '---', '---', '---'),
  ]
  const words = (text) => (text ?? '').replace(/\{(\w+)\}/g, '*$1*')
  for (const code of Object.keys(catalogue).sort()) {
    const entry = catalogue[code]
    lines.push(
      row(`\`${code}\``, entry.sqlstate, entry.exit ?? 1, words(entry.message), words(entry.hint)),
    )
  }
  return `${lines.join('\n')}\n`
}

/** One row of everything that metrics are made of: their names and labels come of it, not their values. */
function oneOfEach() {
  const place = {
    worker: 0,
    database: '',
    user: '',
    host: '',
    address: '',
    port: 0,
    shard: 0,
    role: '',
  }
  const nothing = new Proxy({}, { get: () => 0 })
  const row = {
    ...place,
    traffic: nothing,
    recent: undefined,
    pins: [],
    counts: [],
    channel: '',
    requestClass: '',
  }
  const rows = () => [row]
  const view = {
    clients: rows,
    pools: rows,
    servers: rows,
    listeners: rows,
    usage: rows,
    times: rows,
    workers: rows,
  }
  return { ...view, config: () => [] }
}

/** What is counted in one: the rule of names. */
function unitOf(name) {
  if (name === 'maxwait' || name.endsWith('_seconds')) return 's'
  if (name.endsWith('_time')) return 'µs'
  return /(bytes|received|sent)$/.test(name) && !name.startsWith('pub_sub') ? 'bytes' : ''
}

/** The page of docs/metrics.md. */
export function metricsPage({ familiesOf }, { statsFigures, ownFigures }, { TIME_BOUNDS }) {
  const per = new Map([...statsFigures, ...ownFigures].map((one) => [`avg_${one.name}`, one.per]))
  const unit = (name) => `${unitOf(name)}${per.has(name) ? ` a ${per.get(name)}` : ''}`.trim()
  const printed = ({ name, type }) => (type === 'counter' ? `${name}_total` : name)
  const listed = (labels) => labels.map((one) => `\`${one}\``).join(', ')
  const poolLabels = 'user,database,host,port,shard,role'
  const labels = ({ samples }) => {
    const names = Object.keys(samples[0]?.labels ?? {})
    return names.join() === poolLabels ? 'of a pool' : listed(names)
  }
  const lines = [
    '# Metrics',
    '',
    generated,
    '',
    'What a scrape of `openmetrics_port` gives and what `[otel] endpoint` is sent, all workers together; [monitoring.md](monitoring.md) says how. `openmetrics_namespace` stands before each name as it is written, `namespace` of `[otel]` with a dot.',
    '',
    `Type *unknown* only grows, as a counter does, under a name of PgDog that OpenMetrics keeps from counters; by OTLP it is a monotonic sum, as counters are (there without \`_total\`). Averages are of the last \`stats_period\`. The histogram has buckets up to ${TIME_BOUNDS.join(', ')} s, and one above. Labels *of a pool* are ${listed(poolLabels.split(','))}.`,
    '',
    row('name', 'type', 'unit', 'labels', 'meaning'),
    row('---', '---', '---', '---', '---'),
    ...familiesOf(oneOfEach()).map((family) =>
      row(`\`${printed(family)}\``, family.type, unit(family.name), labels(family), family.help),
    ),
  ]
  return `${lines.join('\n')}\n`
}

const shared = new Set(['json', 'quiet', 'verbose', 'no-color'])

function flagText(flag) {
  const value = flag.type === 'option' ? ` ${flag.helpValue ?? flag.name.toUpperCase()}` : ''
  return `\`${flag.char ? `-${flag.char}, ` : ''}--${flag.name}${value}\``
}

const plain = (text) => (text ?? '').replaceAll('<%= config.bin %>', 'pgshard')

function flagMeaning(flag) {
  const notes = [plain(flag.summary ?? flag.description)]
  if (flag.options) notes.push(`One of ${flag.options.map((one) => `\`${one}\``).join(', ')}.`)
  if (flag.default !== undefined && flag.default !== false)
    notes.push(`Default \`${flag.default}\`.`)
  if (flag.required) notes.push('Required.')
  if (flag.multiple) notes.push('May be repeated.')
  return notes.filter(Boolean).join(' ')
}

function commandLines(command) {
  const name = command.id.replaceAll(':', ' ')
  const args = Object.values(command.args ?? {}).map((arg) =>
    arg.required ? arg.name.toUpperCase() : `[${arg.name.toUpperCase()}]`,
  )
  const lines = ['', `## pgshard ${name}`, '', plain(command.summary ?? command.description), '']
  if (command.summary && command.description) lines.push(plain(command.description), '')
  lines.push('```', ['pgshard', name, ...args, '[flags]'].join(' '), '```', '')
  const flags = Object.values(command.flags ?? {}).filter(
    (flag) => !shared.has(flag.name) && !flag.hidden,
  )
  if (flags.length > 0) {
    lines.push(row('flag', 'meaning'), row('---', '---'))
    for (const flag of flags) lines.push(row(flagText(flag), flagMeaning(flag)))
    lines.push('')
  }
  const examples = (command.examples ?? []).map((one) =>
    plain(typeof one === 'string' ? one : one.command),
  )
  if (examples.length > 0) lines.push('```sh', ...examples, '```')
  return lines
}

/** The page of docs/cli.md. */
export function cliPage(manifest) {
  const lines = [
    '# Commands',
    '',
    generated,
    '',
    "Results go to stdout, progress and notes to stderr. Every command takes `--json`, `--quiet`, `--verbose`, `--no-color` and `--help`; exit codes are in [exit-codes.md](exit-codes.md). PgDog's `run`, `hash` and `configcheck` are known, and `pgshard --config X` without a command is `pgshard serve --config X`.",
  ]
  for (const id of Object.keys(manifest.commands).sort()) {
    const command = manifest.commands[id]
    if (!command.hidden) lines.push(...commandLines(command))
  }
  return `${lines.join('\n').trimEnd()}\n`
}

const roff = (text) =>
  plain(text)
    .replaceAll('\\', '\\e')
    .replaceAll('-', '\\-')
    .replace(/`([^`]*)`/g, '\\fB$1\\fR')
    .replace(/^([.'])/gm, '\\&$1')

function manFlag(flag) {
  const value = flag.type === 'option' ? ` \\fI${roff(flag.helpValue ?? 'VALUE')}\\fR` : ''
  const names = [...(flag.char ? [`-${flag.char}`] : []), `--${flag.name}`]
  return ['.TP', `\\fB${names.map(roff).join(', ')}\\fR${value}`, roff(flagMeaning(flag))]
}

function manCommand(command) {
  const name = `pgshard ${command.id.replaceAll(':', ' ')}`
  const args = Object.values(command.args ?? {}).map((arg) =>
    arg.required ? arg.name.toUpperCase() : `[${arg.name.toUpperCase()}]`,
  )
  const flags = Object.values(command.flags ?? {}).filter(
    (flag) => !shared.has(flag.name) && !flag.hidden,
  )
  const examples = (command.examples ?? []).map((one) =>
    typeof one === 'string' ? one : one.command,
  )
  return [
    `.SS "${roff([name, ...args].join(' '))}"`,
    roff(command.summary ?? ''),
    ...(command.description ? ['.PP', roff(command.description)] : []),
    ...flags.flatMap(manFlag),
    ...(examples.length > 0 ? ['.PP', 'Examples:', '.nf', ...examples.map(roff), '.fi'] : []),
  ]
}

/** The page of docs/man/pgshard.1. */
export function manPage(manifest, version) {
  const ids = Object.keys(manifest.commands).sort()
  const commands = ids.map((id) => manifest.commands[id]).filter(({ hidden }) => !hidden)
  const lines = [
    '.\\" Written by scripts/write-reference.mjs; do not edit.',
    `.TH PGSHARD 1 "" "pgshard ${version}" "User Commands"`,
    '.SH NAME',
    'pgshard \\- shard, reshard and benchmark PostgreSQL',
    '.SH SYNOPSIS',
    '.B pgshard',
    '.I COMMAND',
    '[flags]',
    '.SH DESCRIPTION',
    'A proxy that pools and routes, a splitter of COPY, an online resharder and a load driver in one command. Results go to stdout, progress and notes to stderr.',
    '.SH COMMANDS',
    ...commands.flatMap(manCommand),
    '.SH FLAGS OF EVERY COMMAND',
    ...[
      'json:the result on stdout as JSON',
      'quiet:no progress and no notes',
      'verbose:say more',
      'no-color:no colours',
      'help:all flags with examples',
    ].flatMap((one) => {
      const [name, text] = one.split(':')
      return ['.TP', `\\fB\\-\\-${roff(name)}\\fR`, text]
    }),
    '.SH FILES',
    '.TP',
    '.I pgdog.toml',
    'databases, shards, tables and settings; docs/config.md lists all keys',
    '.TP',
    '.I users.toml',
    'who may connect',
    '.SH EXIT STATUS',
    '0: done. Others: docs/exit\\-codes.md.',
  ]
  return `${lines.join('\n')}\n`
}

async function pages() {
  const manifest = JSON.parse(readFileSync('oclif.manifest.json', 'utf8'))
  return {
    'docs/config.md': configPage(await dist('config/keys/config-sections')),
    'docs/errors.md': errorsPage(await dist('errors/catalogue')),
    'docs/metrics.md': metricsPage(
      await dist('admin/metrics/families'),
      await dist('admin/stats-figures'),
      await dist('metrics/time-buckets'),
    ),
    'docs/cli.md': cliPage(manifest),
    'docs/man/pgshard.1': manPage(manifest, manifest.version),
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const check = process.argv.includes('--check')
  let stale = 0
  for (const [path, text] of Object.entries(await pages())) {
    const same = existsSync(path) && readFileSync(path, 'utf8') === text
    if (same) continue
    if (!check) writeFileSync(path, text)
    console.error(`${path}: ${check ? 'out of date; run "npm run docs"' : 'written'}`)
    stale++
  }
  process.exit(check && stale > 0 ? 1 : 0)
}
