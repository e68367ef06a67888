/** What the parts of bench/reshard.mjs share: flags, one server of its own, databases with rows on it, moves, medians. */
import { spawn, spawnSync } from 'node:child_process'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { systemClock as clock } from '../../dist/src/base/clock.js'
import { silentLog } from '../../dist/src/base/log.js'
import { startCluster } from '../../dist/src/cluster/cluster.js'
import { noGate } from '../../dist/src/reshard/cutover/traffic-gate.js'
import { continueReshard } from '../../dist/src/reshard/reshard.js'
import { keepRatio } from '../results.mjs'

export { clock }
export const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string', default: '400000' },
    changes: { type: 'string', default: '100000' },
    rounds: { type: 'string', default: '3' },
    cutovers: { type: 'string', default: '10' },
    writers: { type: 'string', default: '50' },
    only: { type: 'string', default: 'copy,verify,apply,pause' },
    'bin-dir': { type: 'string', default: '/usr/lib/postgresql/15/bin' },
  },
})
export const [ROWS, CHANGES, ROUNDS] = [flags.rows, flags.changes, flags.rounds].map(Number)
export const only = new Set(flags.only.split(','))
export const program = fileURLToPath(new URL('../../bin/run.js', import.meta.url))
export const directory = mkdtempSync(join(tmpdir(), 'pgshard-bench-reshard-'))
export const clusterDirectory = join(directory, 'pg')

export const run = (args) => {
  const { status, stdout, stderr } = spawnSync(process.execPath, [program, ...args], {
    encoding: 'utf8',
  })
  if (status !== 0) throw new Error(`${args.join(' ')}: ${stderr}`)
  return stdout
}

const cluster = await startCluster({
  directory: clusterDirectory,
  shards: 1,
  replicas: 0,
  postgresVersion: 15,
  binDirectory: flags['bin-dir'],
  settings: {
    fsync: 'off',
    max_connections: '400',
    max_replication_slots: '40',
    max_wal_senders: '40',
    max_wal_size: '8GB',
  },
})
const server = new URL(cluster.servers[0].url)
export const place = {
  host: '127.0.0.1',
  port: Number(server.port),
  user: cluster.user,
}
export const url = (database) =>
  Object.assign(new URL(server.href), { pathname: `/${database}` }).href

let databases = 0
export async function sql(database, ...statements) {
  const client = new pg.Client({ ...place, database })
  await client.connect()
  try {
    let rows = []
    for (const statement of statements) rows = (await client.query(statement)).rows
    return rows
  } finally {
    await client.end()
  }
}
export async function makeDatabases(count) {
  const names = Array.from({ length: count }, () => `bench_${++databases}`)
  for (const name of names) await sql('postgres', `CREATE DATABASE ${name}`)
  return names
}
export const drop = async (names) => {
  for (const name of names) await sql('postgres', `DROP DATABASE IF EXISTS ${name} (FORCE)`)
}
const sharding = (shardCount) => ({
  shardCount,
  tables: [
    {
      name: 'acct',
      column: 'tenant',
      keyType: 'bigint',
      placement: {
        kind: 'hash',
        hasher: 'postgres',
        buckets: shardCount,
        bucketMap: Array.from({ length: shardCount }, (_, i) => i),
      },
    },
  ],
  referenceTables: [],
  schemas: [],
  otherTables: 'reference',
})
export const side = (name, names) => ({
  name,
  shards: names.map((database) => ({ ...place, database })),
  sharding: sharding(names.length),
})
export const schema = `CREATE TABLE acct (tenant bigint, id bigint, note text, amount numeric(12,2), at timestamptz, PRIMARY KEY (tenant, id));`
export const rowsOf = `i % 5000, i, md5(i::text) || md5((i + 1)::text), i / 7.0, timestamptz '2026-01-01' + i * interval '1 s'`

/** Rows 1 to `rows`, each on its shard. */
export async function fill(names, rows) {
  await Promise.all(
    names.map((name, shard) =>
      sql(
        name,
        schema,
        `CREATE TABLE keys (k bigint) PARTITION BY HASH (k)`,
        `INSERT INTO acct SELECT ${rowsOf} FROM generate_series(1::bigint, ${rows}) i
      WHERE satisfies_hash_partition('keys'::regclass, ${names.length}, ${shard}, i % 5000)`,
        'DROP TABLE keys',
        'VACUUM ANALYZE acct',
        'CHECKPOINT',
      ),
    ),
  )
}
const config = {
  prepare: async () => undefined,
  switch: async () => null,
  restore: async () => undefined,
}
export const move = (source, target, stopAfter, listener = {}) =>
  continueReshard({
    source,
    target,
    stopAfter,
    gate: noGate,
    config,
    clock,
    log: silentLog,
    listener: { step: () => undefined, ...listener },
    jobs: 1,
    budgetMs: 10_000,
    verifyHoldMs: 10_000,
    endPinned: false,
    wayBack: false,
    keepFollowing: false,
  })
export const timed = async (work) => {
  const started = performance.now()
  await work()
  return (performance.now() - started) / 1000
}
export const shell = (command) =>
  new Promise((resolve, reject) => {
    const child = spawn('bash', ['-c', `set -o pipefail; ${command}`], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    child.on('exit', (code) => (code === 0 ? resolve() : reject(new Error(`${command}: ${code}`))))
  })
export const median = (values) =>
  [...values].sort((a, b) => a - b)[Math.floor((values.length - 1) / 2)]
export function tell(what, ours, peer, ratio, target) {
  console.log(
    `${what}: ours ${ours}, peer ${peer}: ${ratio.toFixed(2)} (target ${target}) ${ratio >= target ? 'ok' : 'BELOW'}`,
  )
  keepRatio({ what, ours, peer, ratio, target })
}
export const tool = (name) => join(flags['bin-dir'], name)
