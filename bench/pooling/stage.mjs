/** What bench/pooler.mjs starts: PostgreSQL 15, PgBouncer and serve, as user postgres when root, in a directory of their own. */
import { spawn, spawnSync } from 'node:child_process'
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const BIN = '/usr/lib/postgresql/15/bin'
const PGBOUNCER = '/usr/sbin/pgbouncer'
const root = fileURLToPath(new URL('../..', import.meta.url))
const isRoot = process.getuid?.() === 0
const wait = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

export const SHARDS = 4
export const ROWS_A_SCALE = 100_000

function freePort() {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address()
      server.close(() => resolve(port))
    })
  })
}

export const directory = mkdtempSync(join(tmpdir(), 'pgshard-pooler-'))
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

/** With the tables of pgbench. */
export async function startPostgres(scale) {
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
  const settings = { port, listen_addresses: '127.0.0.1', fsync: 'off', max_connections: 600 }
  const flags = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  start(`${BIN}/postgres`, ['-D', data, '-k', directory, ...flags], { asPostgres: true })
  await answers(port, 'PostgreSQL')
  run(`${BIN}/pgbench`, [...at(port), '-i', '-q', '-s', String(scale), 'postgres'])
  return port
}

export const at = (port) => ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres']

export async function startPgBouncer(server, mode, poolSize) {
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

const hostOf = (server, database, shard) =>
  `[[databases]]\nname = "postgres"\nhost = "127.0.0.1"\nport = ${server}\ndatabase_name = "${database}"\nshard = ${shard}\n`

/** `shards`: databases of which each holds the accounts that hash to it; one is the whole. The pool is split among them. */
export async function startServe(server, { pool, workers, shards = ['postgres'] }) {
  const port = await freePort()
  const name = shards.length > 1 ? 'sharded' : 'plain'
  const config = join(directory, `${name}.toml`)
  const users = join(directory, 'users.toml')
  const perShard = Math.max(1, Math.round(pool / shards.length))
  const tables =
    shards.length > 1
      ? '[[sharded_tables]]\ndatabase = "postgres"\nname = "pgbench_accounts"\ncolumn = "aid"\ndata_type = "bigint"\n'
      : ''
  writeFileSync(
    config,
    `[general]\nhost = "127.0.0.1"\nport = ${port}\nauth_type = "trust"\ndefault_pool_size = ${perShard}\n` +
      // as PgBouncer above: neither writes a line for each client
      'log_connections = false\nlog_disconnections = false\n' +
      // only to fill the shards
      'cross_shard_writes = "best_effort"\n' +
      shards.map((database, shard) => hostOf(server, database, shard)).join('') +
      tables,
  )
  writeFileSync(users, '[[users]]\nname = "postgres"\ndatabase = "postgres"\npassword = "unused"\n')
  const args = ['bin/run.js', 'serve', '--config', config, '--users', users]
  if (workers !== undefined) args.push('--workers', workers)
  const child = start(process.execPath, args)
  await answers(port, 'pgshard serve')
  return { name: 'pgshard', port, pid: child.pid }
}

/** Databases with a part of the accounts each, copied through `serve`, which places the rows. */
export function makeShards(server) {
  const names = Array.from({ length: SHARDS }, (_, shard) => `shard_${shard}`)
  for (const name of names) {
    run(`${BIN}/createdb`, [...at(server), name])
    run(`${BIN}/pgbench`, [...at(server), '-i', '-q', '-I', 'dtp', '-s', '1', name])
  }
  return names
}

export function fillShards(server, serve, names) {
  const psql = (port, sql) => `${BIN}/psql -q ${at(port).join(' ')} -c '${sql}' postgres`
  const from = psql(server, 'copy pgbench_accounts to stdout')
  const to = psql(serve.port, 'copy pgbench_accounts from stdin')
  run('/bin/bash', ['-c', `set -o pipefail; ${from} | ${to}`])
  for (const name of names)
    run(`${BIN}/psql`, [...at(server), '-q', '-c', 'vacuum analyze pgbench_accounts', name])
}

export async function stopAll() {
  for (const child of started.reverse()) child.kill('SIGINT')
  await wait(1000)
  for (const child of started) if (child.exitCode === null) child.kill('SIGKILL')
  rmSync(directory, { recursive: true, force: true })
}
