/**
 * Makes docs/benchmarks.md of the figures in bench/results, and measures them.
 *   node scripts/benchmarks.mjs                       writes the page
 *   node scripts/benchmarks.mjs --check               fails when the page is out of date
 *   node scripts/benchmarks.mjs --list                the pieces that can be measured
 *   node scripts/benchmarks.mjs --run PIECE[,PIECE…]  measures them, one after the other, and writes the page; `all`: every piece
 * A piece takes less than ten minutes. It needs a build, psql, pgbench and pgbouncer, and a machine that does nothing else.
 * A figure that is measured again takes the place of the older one; all others keep their commit.
 */
import { spawnSync } from 'node:child_process'
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { figureOf } from '../bench/pooling/table.mjs'
import { measuredOn, putFigure } from '../bench/results.mjs'

const PAGE = 'docs/benchmarks.md'
const own = fileURLToPath(new URL('../bin/run.js', import.meta.url))
const BIN = '/usr/lib/postgresql/15/bin'
const PORT = 24_800

const resultsOf = (name) => join('bench', 'results', `${name}.json`)

/** A program of ours with its output on the terminal. */
function node(...argv) {
  const { status } = spawnSync(process.execPath, argv, { stdio: 'inherit' })
  if (status !== 0) throw new Error(`node ${argv.join(' ')} ended with ${status}`)
}

const bench = (script, name, ...argv) =>
  node(`bench/${script}.mjs`, ...argv, '--results', resultsOf(name))

/** Servers of their own for a piece: as many as it wants, on ports from PORT on. */
function withServers(count, work) {
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-benchmarks-'))
  const where = ['--dir', join(directory, 'pg')]
  try {
    node(
      own,
      'cluster',
      'start',
      '--shards',
      `${count}`,
      '--base-port',
      `${PORT}`,
      '--bin-dir',
      BIN,
      ...where,
    )
    const urls = Array.from(
      { length: count },
      (_, i) => `postgres://postgres@127.0.0.1:${PORT + i}/app`,
    )
    work(urls, directory)
  } finally {
    spawnSync(process.execPath, [own, 'cluster', 'destroy', ...where], { stdio: 'ignore' })
    rmSync(directory, { recursive: true, force: true })
  }
}

/** bench/pooler.mjs keeps rows of its own, which become figures here. */
function pooler(name, ...argv) {
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-benchmarks-'))
  const rows = join(directory, 'rows.json')
  try {
    node('bench/pooler.mjs', '--rounds', '5', '--seconds', '2', ...argv, '--results', rows)
  } finally {
    if (existsSync(rows))
      for (const row of JSON.parse(readFileSync(rows, 'utf8')).rows)
        putFigure(resultsOf(name), { ...figureOf(row), ...measuredOn() })
    rmSync(directory, { recursive: true, force: true })
  }
}

const gatherConfig = (urls) => {
  const hosts = urls.map((url, shard) => {
    const { hostname, port, pathname } = new URL(url)
    return `[[databases]]\nname = "app"\nhost = "${hostname}"\nport = ${port}\ndatabase_name = "${pathname.slice(1)}"\nshard = ${shard}\n`
  })
  const tables = ['gather_a', 'gather_b'].map(
    (name) => `[[sharded_tables]]\ndatabase = "app"\nname = "${name}"\ncolumn = "k"\n`,
  )
  return `[general]\nhost = "127.0.0.1"\nport = ${PORT + 90}\nauth_type = "trust"\n[admin]\npassword = "console"\n${hosts.join('')}${tables.join('')}`
}

/** One server plain, four as shards behind serve. */
function gather() {
  withServers(5, ([plain, ...shards], directory) => {
    const path = (name) => join(directory, name)
    writeFileSync(path('pgdog.toml'), gatherConfig(shards))
    writeFileSync(
      path('users.toml'),
      '[[users]]\nname = "postgres"\ndatabase = "app"\npassword = "x"\n',
    )
    const files = ['--config', path('pgdog.toml'), '--users', path('users.toml')]
    node(own, 'setup', ...files)
    const quoted = [own, 'serve', ...files, '--pid-file', path('pid')].map((word) => `'${word}'`)
    spawnSync('/bin/sh', [
      '-c',
      `'${process.execPath}' ${quoted.join(' ')} > '${path('log')}' 2>&1 &`,
    ])
    waitForLine(path('log'), 'listening on')
    try {
      const at = `127.0.0.1:${PORT + 90}`
      const through = [`postgres://postgres@${at}/app`, `postgres://admin:console@${at}/pgshard`]
      bench('gather', 'gather', plain, ...through, ...shards, '--rounds', '7')
    } finally {
      process.kill(Number(readFileSync(path('pid'), 'utf8')), 'SIGTERM')
    }
  })
}

function waitForLine(path, text) {
  for (let tries = 0; tries < 300; tries++) {
    if (existsSync(path) && readFileSync(path, 'utf8').includes(text)) return
    spawnSync('sleep', ['0.1'])
  }
  throw new Error(`no "${text}" in ${path}`)
}

const reshard =
  (name, part, ...argv) =>
  () =>
    bench('reshard', name, '--only', part, ...argv)
const copy =
  (...argv) =>
  () =>
    bench('copy', 'copy', '--rounds', '5', ...argv)

/** What can be measured, in the order of the page: each with the minutes that it takes on two cores. */
const pieces = {
  'pooler-simple': [5, () => pooler('pooler', '--only', 'simple')],
  'pooler-extended': [5, () => pooler('pooler', '--only', 'extended')],
  'pooler-prepared': [2, () => pooler('pooler', '--only', 'prepared,sharded')],
  'pooler-workers': [
    3,
    () =>
      pooler(
        'pooler-workers',
        '--only',
        'simple,extended',
        '--clients',
        '64,128',
        '--workers',
        '2',
      ),
  ],
  splitter: [1, () => bench('copy-splitter', 'splitter')],
  'copy-csv': [8, copy('--only', 'load', '--formats', 'csv')],
  'copy-text': [8, copy('--only', 'load', '--formats', 'text')],
  'copy-binary': [7, copy('--only', 'load', '--formats', 'binary')],
  'copy-proxy': [
    9,
    () => bench('copy', 'copy', '--rounds', '3', '--rows', '2000000', '--only', 'proxy'),
  ],
  'copy-faults': [
    5,
    () =>
      bench(
        'copy',
        'copy',
        '--rounds',
        '3',
        '--rows',
        '2000000',
        '--only',
        'rejects,stall',
        '--formats',
        'csv',
      ),
  ],
  'reshard-copy': [6, reshard('reshard', 'copy,verify', '--rows', '1500000')],
  'reshard-apply': [4, reshard('reshard', 'apply', '--changes', '200000')],
  'reshard-pause': [8, reshard('reshard', 'pause', '--cutovers', '10')],
  driver: [
    2,
    () =>
      withServers(1, ([url]) => {
        node(own, 'bench', 'init', '-s', '10', url)
        bench('bench-driver', 'driver', url, '5', '8', '20000')
      }),
  ],
  'idle-clients': [2, () => bench('idle-clients', 'idle-clients')],
  scatter: [4, () => withServers(1, ([url]) => bench('scatter', 'scatter', url, '--rounds', '5'))],
  'two-phase': [
    2,
    () => withServers(2, (urls) => bench('two-phase', 'two-phase', ...urls, '--rounds', '5')),
  ],
  gather: [4, gather],
  start: [1, () => bench('start', 'start')],
}

/** Sections of the page. */
const sections = [
  [
    'pooler',
    'Pooling',
    '`pgbench -S` through PgBouncer and through `serve`, pool of 20, by turns, medians behind a warm-up of both, with metrics and the statistics of the page in the path. CPU is that of the pooler, a transaction; the first ratio is of transactions, the second of CPU.',
    'node bench/pooler.mjs',
  ],
  [
    'pooler-workers',
    'Pooling with two workers',
    'The same with `serve --workers 2`. On two cores pgbench and PostgreSQL have to share them with both.',
    'node bench/pooler.mjs --workers 2',
  ],
  [
    'splitter',
    'Splitting and placing rows alone',
    'No PostgreSQL: rates by the CPU time of one process.',
    'node bench/copy-splitter.mjs',
  ],
  [
    'copy',
    'COPY',
    'Rows of 101 bytes into four servers on this machine; the ratio is of times.',
    'node bench/copy.mjs',
  ],
  [
    'reshard',
    'Moves',
    'Two shards into four, all on one server; medians of interleaved rounds.',
    'node bench/reshard.mjs',
  ],
  [
    'driver',
    'The load driver',
    '`bench -S -c 8` against `pgbench -S -c 8` on one server, by turns.',
    'node bench/bench-driver.mjs URL',
  ],
  [
    'idle-clients',
    'Idle clients',
    'Resident memory of `serve`, before and behind logins.',
    'node bench/idle-clients.mjs',
  ],
  [
    'scatter',
    'Reads over four shards',
    '1 M rows in four databases of one server.',
    'node bench/scatter.mjs URL',
  ],
  [
    'gather',
    'Reads finished on one server',
    'Two tables of 100,000 rows joined on a column that is not the key, over four shards, against one PostgreSQL.',
    'node bench/gather.mjs …',
  ],
  ['two-phase', 'Two-phase commit', 'Two servers, fsync on.', 'node bench/two-phase.mjs URL URL'],
  [
    'start',
    'Start of commands',
    'From the start of the process to its end.',
    'node bench/start.mjs',
  ],
]

const read = (name) =>
  existsSync(resultsOf(name)) ? JSON.parse(readFileSync(resultsOf(name), 'utf8')) : { figures: [] }

const line = (...cells) =>
  `| ${cells.map((cell) => String(cell ?? '').replaceAll('|', '\\|')).join(' | ')} |`

const verdict = ({ target, holds }) =>
  target === undefined ? '' : `${target}: ${holds ? 'holds' : '**missed**'}`

function sectionLines([name, title, about, command]) {
  const { figures, notes = [] } = read(name)
  if (figures.length === 0) return []
  const dates = [...new Set(figures.map(({ date }) => date).filter(Boolean))].sort()
  return [
    '',
    `## ${title}: \`${command}\``,
    '',
    about,
    '',
    line('', 'peer', 'pgshard', 'ratio', 'target', 'commit'),
    line('---', '---', '---', '---', '---', '---'),
    ...figures.map((one) =>
      line(one.what, one.peer, one.ours, one.ratio, verdict(one), one.commit),
    ),
    ...(dates.length > 0 ? ['', `Measured ${dates.join(', ')}.`] : []),
    ...notes.flatMap((note) => ['', note]),
  ]
}

export function page() {
  const all = sections.flatMap(([name, title]) =>
    read(name).figures.map((one) => ({ title, ...one })),
  )
  const judged = all.filter(({ target }) => target !== undefined)
  const missed = judged.filter(({ holds }) => !holds)
  const machines = [...new Set(all.map(({ machine }) => machine).filter(Boolean))]
  return `${[
    '# Benchmarks',
    '',
    '<!-- Written by scripts/benchmarks.mjs of bench/results; do not edit. -->',
    '',
    'The last run of each figure, with the commit that it was measured on. Ratios of one run count; absolute figures are those of one machine, everything on loopback, client and servers included, and its noise is 15 to 25 %. `node scripts/benchmarks.mjs --run PIECE` measures a piece again (`--list` names them), on a machine that does nothing else.',
    '',
    `Machines: ${machines.join('; ')}. PostgreSQL 15, PgBouncer 1.18.`,
    '',
    `Of ${judged.length} figures with a target ${judged.length - missed.length} reach it.${missed.length > 0 ? ' Missed:' : ''}`,
    '',
    ...missed.map(
      ({ title, what, ours, ratio, target }) => `- ${title}, ${what}: ${ratio ?? ours} (${target})`,
    ),
    ...sections.flatMap(sectionLines),
  ].join('\n')}\n`
}

function list() {
  for (const [name, [minutes]] of Object.entries(pieces))
    console.log(`${name.padEnd(18)} about ${minutes} min`)
}

function check() {
  if (readFileSync(PAGE, 'utf8') === page()) return
  console.error(`${PAGE}: out of date; run "node scripts/benchmarks.mjs"`)
  process.exitCode = 1
}

/** A piece that fails is said and does not keep the others from being measured. */
function measure(names) {
  const wanted = names === 'all' ? Object.keys(pieces) : (names ?? '').split(',')
  const wrong = wanted.filter((name) => !pieces[name])
  if (wrong.length > 0) throw new Error(`no piece "${wrong.join(', ')}"; --list names them`)
  for (const name of wanted) {
    const [minutes, run] = pieces[name]
    console.log(`=== ${name}, about ${minutes} min`)
    try {
      run()
    } catch (error) {
      console.error(`${name}: ${error.message}`)
      process.exitCode = 1
    }
    writeFileSync(PAGE, page())
  }
}

function main([flag, names]) {
  if (flag === '--list') list()
  else if (flag === '--check') check()
  else if (flag === '--run') measure(names)
  else if (flag === undefined) writeFileSync(PAGE, page())
  else throw new Error(`unknown argument ${flag}`)
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href)
  main(process.argv.slice(2))
