/**
 * pgshard serve against PgBouncer: `pgbench -S` through both, in front of one PostgreSQL 15, by turns.
 *   node bench/pooler.mjs [--rounds 5] [--seconds 3] [--clients 1,8,32,64,128] [--protocols simple,extended]
 *                         [--pool 20] [--scale 10] [--workers N] [--no-prepared] [--json]
 * Starts everything itself (Debian's postgresql-15, pgbouncer; as user postgres when root). Prints the medians of all
 * rounds, transactions a second and CPU a transaction of the pooler, against the targets of the design (§12).
 * Only ratios of one run mean anything, and only on a machine that does nothing else. Exit 1 when a target is missed.
 */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const BIN = '/usr/lib/postgresql/15/bin'
const PGBOUNCER = '/usr/sbin/pgbouncer'
const root = fileURLToPath(new URL('..', import.meta.url))
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
const isRoot = process.getuid?.() === 0

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    clients: { type: 'string', default: '1,8,32,64,128' },
    protocols: { type: 'string', default: 'simple,extended' },
    pool: { type: 'string', default: '20' },
    scale: { type: 'string', default: '10' },
    workers: { type: 'string' },
    'no-prepared': { type: 'boolean', default: false },
    json: { type: 'boolean', default: false },
  },
})
const rounds = Number(options.rounds)
const seconds = Number(options.seconds)
const counts = options.clients.split(',').map(Number)
const protocols = options.protocols.split(',')
const note = (text) => void (options.json || process.stderr.write(text))

/** design.md §12: [tps at least, CPU a transaction at most] as parts of PgBouncer's. */
const targets = {
  1: [0.85, undefined],
  8: [1.0, undefined],
  32: [1.1, 1.1],
  64: [1.3, 0.8],
  128: [1.3, 0.8],
}
const PREPARED_CLIENTS = 64
const PREPARED_TARGET = 1.1
/** Of what PgBouncer adds to the latency at 1 client. */
const ADDED_LATENCY_TARGET = 2.0

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

const directory = mkdtempSync(join(tmpdir(), 'pgshard-pooler-'))
chmodSync(directory, 0o777)
const started = []

/** Runs a program, as user postgres when we are root. */
function run(command, args) {
  const [program, all] = isRoot
    ? [
        'setpriv',
        ['--reuid', 'postgres', '--regid', 'postgres', '--clear-groups', command, ...args],
      ]
    : [command, args]
  const done = spawnSync(program, all, { encoding: 'utf8', env: { ...process.env, LC_ALL: 'C' } })
  if (done.status !== 0) throw new Error(`${command} failed: ${done.stderr || done.stdout}`)
  return done.stdout
}

function start(command, args, { asPostgres = false } = {}) {
  const [program, all] =
    isRoot && asPostgres
      ? [
          'setpriv',
          ['--reuid', 'postgres', '--regid', 'postgres', '--clear-groups', command, ...args],
        ]
      : [command, args]
  const child = spawn(program, all, { stdio: ['ignore', 'ignore', 'pipe'], cwd: root })
  child.stderr.setEncoding('utf8')
  child.text = ''
  child.stderr.on('data', (text) => {
    child.text = (child.text + text).slice(-4000)
  })
  started.push(child)
  return child
}

async function answers(port, what) {
  for (let i = 0; i < 100; i++) {
    const ready = spawnSync(`${BIN}/pg_isready`, ['-h', '127.0.0.1', '-p', String(port)])
    if (ready.status === 0) return
    await wait(100)
  }
  throw new Error(`${what} does not answer: ${started.map((child) => child.text).join('\n')}`)
}

async function startPostgres() {
  const data = join(directory, 'data')
  run(`${BIN}/initdb`, [
    '-D',
    data,
    '-U',
    'postgres',
    '-A',
    'trust',
    '--locale=C.UTF-8',
    '-E',
    'UTF8',
  ])
  const port = await freePort()
  const settings = { port, listen_addresses: '127.0.0.1', fsync: 'off', max_connections: 400 }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  start(`${BIN}/postgres`, ['-D', data, '-k', directory, ...flags], { asPostgres: true })
  await answers(port, 'PostgreSQL')
  run(`${BIN}/pgbench`, [...at(port), '-i', '-q', '-s', options.scale, 'postgres'])
  return port
}

const at = (port) => ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres']

async function startPgBouncer(server, mode, poolSize) {
  const port = await freePort()
  const users = join(directory, 'pgbouncer-users.txt')
  writeFileSync(users, '"postgres" ""\n')
  const file = join(directory, `pgbouncer-${mode}.ini`)
  const lines = [
    '[databases]',
    `postgres = host=127.0.0.1 port=${server} dbname=postgres`,
    '[pgbouncer]',
    `listen_addr = 127.0.0.1\nlisten_port = ${port}\nunix_socket_dir =`,
    `auth_type = trust\nauth_file = ${users}`,
    `pool_mode = ${mode}\ndefault_pool_size = ${poolSize}\nmax_client_conn = 1000`,
    'ignore_startup_parameters = extra_float_digits\nlog_connections = 0\nlog_disconnections = 0',
  ]
  writeFileSync(file, `${lines.join('\n')}\n`)
  const child = start(PGBOUNCER, ['-q', file], { asPostgres: true })
  await answers(port, 'PgBouncer')
  return { name: 'PgBouncer', port, pid: child.pid }
}

async function startServe(server) {
  const port = await freePort()
  const config = join(directory, 'pgdog.toml')
  const users = join(directory, 'users.toml')
  writeFileSync(
    config,
    `[general]\nhost = "127.0.0.1"\nport = ${port}\nauth_type = "trust"\ndefault_pool_size = ${options.pool}\n` +
      `[[databases]]\nname = "postgres"\nhost = "127.0.0.1"\nport = ${server}\n`,
  )
  writeFileSync(users, '[[users]]\nname = "postgres"\ndatabase = "postgres"\npassword = "unused"\n')
  const workers = options.workers === undefined ? [] : ['--workers', options.workers]
  const child = start(process.execPath, [
    'bin/run.js',
    'serve',
    '--config',
    config,
    '--users',
    users,
    ...workers,
  ])
  await answers(port, 'pgshard serve')
  return { name: 'pgshard', port, pid: child.pid }
}

/** utime and stime of a process and all beneath it, in milliseconds. */
function cpuMs(pid) {
  const children = new Map()
  const own = new Map()
  for (const name of readdirSync('/proc')) {
    if (!/^\d+$/.test(name)) continue
    try {
      const fields = readFileSync(`/proc/${name}/stat`, 'latin1')
        .replace(/^.*\) /, '')
        .split(' ')
      const parent = Number(fields[1])
      children.set(parent, [...(children.get(parent) ?? []), Number(name)])
      own.set(Number(name), Number(fields[11]) + Number(fields[12]))
    } catch {
      // it has ended meanwhile
    }
  }
  const sum = (of) =>
    (own.get(of) ?? 0) + (children.get(of) ?? []).reduce((ticks, child) => ticks + sum(child), 0)
  return sum(pid) * 10
}

/** One run of pgbench: transactions a second, and CPU a transaction of the pooler in microseconds. */
async function measure(pooler, clients, protocol) {
  const before = pooler.pid === undefined ? 0 : cpuMs(pooler.pid)
  const args = ['-S', '-n', '-c', String(clients), '-j', String(Math.min(clients, 2))]
  const child = spawn(
    `${BIN}/pgbench`,
    [...at(pooler.port), ...args, '-T', String(seconds), '-M', protocol, 'postgres'],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, LC_ALL: 'C' } },
  )
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (text += part))
  const code = await new Promise((resolve) => child.on('close', resolve))
  const done = Number(/actually processed: (\d+)/.exec(text)?.[1])
  const tps = Number(/^tps = ([\d.]+)/m.exec(text)?.[1])
  if (code !== 0 || !(done > 0)) throw new Error(`pgbench through ${pooler.name} failed:\n${text}`)
  const after = pooler.pid === undefined ? 0 : cpuMs(pooler.pid)
  return { tps, cpuUs: ((after - before) * 1000) / done }
}

const median = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** Runs of all poolers by turns; who begins changes from round to round. */
async function compare(poolers, clients, protocol) {
  const samples = poolers.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < poolers.length; i++) {
      const which = (round + i) % poolers.length
      samples[which].push(await measure(poolers[which], clients, protocol))
    }
    note('.')
  }
  return samples.map((of) => ({
    tps: median(of.map(({ tps }) => tps)),
    cpuUs: median(of.map(({ cpuUs }) => cpuUs)),
  }))
}

function judged(row, [tpsTarget, cpuTarget]) {
  const tps = row.pgshard.tps / row.pgbouncer.tps
  const cpu = row.pgshard.cpuUs / row.pgbouncer.cpuUs
  const holds = tps >= tpsTarget && (cpuTarget === undefined || cpu <= cpuTarget)
  return { ...row, ratio: { tps, cpu }, target: { tps: tpsTarget, cpu: cpuTarget ?? null }, holds }
}

async function compareAll(server, pgbouncer, serve) {
  const rows = []
  const direct = { name: 'direct', port: server, pid: undefined }
  for (const protocol of protocols) {
    for (const clients of counts) {
      note(`\n${protocol}, ${clients} clients `)
      const poolers = clients === 1 ? [pgbouncer, serve, direct] : [pgbouncer, serve]
      const [theirs, ours, bare] = await compare(poolers, clients, protocol)
      const row = { what: protocol, clients, pgbouncer: theirs, pgshard: ours }
      rows.push(judged(row, targets[clients] ?? [1.0, undefined]))
      if (!bare) continue
      const added = (of) => 1e6 / of.tps - 1e6 / bare.tps
      const ratio = added(ours) / added(theirs)
      rows.push({
        what: `${protocol}, added latency`,
        clients,
        addedUs: { pgbouncer: added(theirs), pgshard: added(ours) },
        ratio: { latency: ratio },
        target: { latency: ADDED_LATENCY_TARGET },
        // where PgBouncer was faster than none, the machine was too busy to tell
        holds: added(theirs) > 0 && ratio <= ADDED_LATENCY_TARGET,
      })
    }
  }
  return rows
}

async function comparePrepared(server, serve) {
  note(`\nprepared, ${PREPARED_CLIENTS} clients `)
  const session = await startPgBouncer(server, 'session', PREPARED_CLIENTS)
  const [theirs, ours] = await compare([session, serve], PREPARED_CLIENTS, 'prepared')
  const row = { what: 'prepared, PgBouncer in session mode', clients: PREPARED_CLIENTS }
  return judged({ ...row, pgbouncer: theirs, pgshard: ours }, [PREPARED_TARGET, undefined])
}

function printTable(rows) {
  const cells = rows.map((row) => {
    const end = [row.holds ? 'holds' : 'MISSES']
    if (row.addedUs) {
      const { pgbouncer, pgshard } = row.addedUs
      const [theirs, ours] = [`+${pgbouncer.toFixed(0)} µs`, `+${pgshard.toFixed(0)} µs`]
      return [
        row.what,
        '1',
        theirs,
        ours,
        `${row.ratio.latency.toFixed(2)}×`,
        `≤ ${row.target.latency}`,
        ...end,
      ]
    }
    const side = ({ tps, cpuUs }) => `${tps.toFixed(0)} · ${cpuUs.toFixed(1)} µs`
    const cpu = row.target.cpu === null ? '' : `, CPU ≤ ${row.target.cpu}`
    return [
      row.what,
      String(row.clients),
      side(row.pgbouncer),
      side(row.pgshard),
      `${row.ratio.tps.toFixed(2)}× · ${row.ratio.cpu.toFixed(2)}×`,
      `≥ ${row.target.tps}${cpu}`,
      ...end,
    ]
  })
  const head = [
    'protocol',
    'clients',
    'PgBouncer tps · CPU',
    'pgshard tps · CPU',
    'ratio',
    'target',
    '',
  ]
  const widths = head.map((title, i) =>
    Math.max(title.length, ...cells.map((row) => row[i].length)),
  )
  for (const row of [head, ...cells])
    console.log(
      row
        .map((cell, i) => cell.padEnd(widths[i]))
        .join('  ')
        .trimEnd(),
    )
}

try {
  const server = await startPostgres()
  const pgbouncer = await startPgBouncer(server, 'transaction', options.pool)
  const serve = await startServe(server)
  const rows = await compareAll(server, pgbouncer, serve)
  if (!options['no-prepared']) rows.push(await comparePrepared(server, serve))
  note('\n\n')
  const facts = {
    rounds,
    seconds,
    pool: Number(options.pool),
    workers: Number(options.workers ?? 1),
  }
  if (options.json) console.log(JSON.stringify({ ...facts, rows }))
  else printTable(rows)
  process.exitCode = rows.every((row) => row.holds) ? 0 : 1
} finally {
  for (const child of started.reverse()) child.kill('SIGINT')
  await wait(1000)
  for (const child of started) if (child.exitCode === null) child.kill('SIGKILL')
  rmSync(directory, { recursive: true, force: true })
}
