/**
 * Merged reads against the targets of the design (§12), on one PostgreSQL with a database a shard and one with all rows:
 *   node bench/scatter.mjs postgres://postgres@127.0.0.1:5432/postgres [--rows 1000000] [--rounds 7] [--keep] [--results FILE]
 * Scatter: ORDER BY … LIMIT 100 over four shards by one psql through serve, against the slowest of four psql at once,
 * each on its shard. Target: at most 1.3 times.
 * Merge: all rows in order by one psql through serve, against psql reading them in order from one database. Target: at
 * least 0.7 of its rate, and serve grows by less than 50 MB.
 * It needs a build and psql. Rounds are interleaved and medians taken.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { makeKeyPlacer } from '../dist/src/sharding/key-placer.js'
import { keepFigure, keepRatio } from './results.mjs'

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rows: { type: 'string', default: '1000000' },
    rounds: { type: 'string', default: '7' },
    keep: { type: 'boolean', default: false },
  },
})
const [url] = positionals
if (url === undefined) {
  console.error('usage: node bench/scatter.mjs URL [--rows N] [--rounds N] [--keep]')
  process.exit(2)
}
const ROWS = Number(flags.rows)
const ROUNDS = Number(flags.rounds)
const SHARDS = 4
const names = Array.from({ length: SHARDS }, (_, shard) => `scatter_${shard}`)
const own = fileURLToPath(new URL('../bin/run.js', import.meta.url))
const urlOf = (database) => {
  const at = new URL(url)
  at.pathname = `/${database}`
  return at.href
}

async function query(database, sql) {
  const client = new pg.Client({ connectionString: urlOf(database) })
  await client.connect()
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

const placer = makeKeyPlacer({
  column: 'id',
  keyType: 'bigint',
  placement: { kind: 'hash', hasher: 'postgres', buckets: SHARDS, bucketMap: [0, 1, 2, 3] },
})

/** The same rows in one database, and each in that of its shard. */
async function load() {
  const exists = await query('postgres', "select 1 from pg_database where datname = 'scatter_3'")
  if (exists.length > 0) return
  for (const name of ['scatter_all', ...names]) await query('postgres', `create database ${name}`)
  const table = 'create table rows (id bigint, amount numeric(12,2), name text, at timestamptz)'
  const make = `insert into rows select i, (i::bigint * 7919 % 1000003) / 100.0, md5(i::text), timestamptz '2024-01-01' + i * interval '1 second' from generate_series(1, ${ROWS}) i`
  await query(
    'scatter_all',
    `${table}; ${make}; create index on rows (id); vacuum analyze rows`.split('; vacuum')[0],
  )
  await query('scatter_all', 'vacuum analyze rows')
  const shardOf = Array.from({ length: ROWS + 1 }, (_, id) => placer.ofString(String(id)))
  for (const [shard, name] of names.entries()) {
    const ids = shardOf.flatMap((one, id) => (one === shard && id > 0 ? [id] : []))
    await query(name, table)
    for (let at = 0; at < ids.length; at += 50_000) {
      const list = ids.slice(at, at + 50_000).join(',')
      await query(
        name,
        make.replace(`generate_series(1, ${ROWS}) i`, `unnest('{${list}}'::bigint[]) i`),
      )
    }
    await query(name, 'create index on rows (id)')
    await query(name, 'vacuum analyze rows')
  }
}

function configure() {
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-scatter-'))
  const { hostname, port } = new URL(url)
  const lines = ['[general]', 'host = "127.0.0.1"', 'port = 0', 'auth_type = "trust"', '']
  for (const [shard, name] of names.entries()) {
    lines.push('[[databases]]', 'name = "app"', `host = "${hostname}"`, `port = ${port}`)
    lines.push(`database_name = "${name}"`, `shard = ${shard}`, '')
  }
  lines.push('[[sharded_tables]]', 'database = "app"', 'name = "rows"', 'column = "id"')
  lines.push('data_type = "bigint"', '')
  const configPath = join(directory, 'pgdog.toml')
  const usersPath = join(directory, 'users.toml')
  writeFileSync(configPath, lines.join('\n'))
  writeFileSync(usersPath, '[[users]]\nname = "postgres"\ndatabase = "app"\n')
  return ['serve', '--config', configPath, '--users', usersPath]
}

/** serve, once it has said where it listens. */
function start() {
  const child = spawn(process.execPath, [own, ...configure()], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  return new Promise((resolve, reject) => {
    let said = ''
    const hear = (chunk) => {
      said += chunk
      const port = /(?:127\.0\.0\.1|port)[: ]+(\d+)/.exec(said)?.[1]
      if (port) resolve({ child, port })
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('exit', () => reject(new Error(`serve ended:\n${said}`)))
  })
}

function psql(target, sql) {
  return new Promise((resolve, reject) => {
    const from = performance.now()
    const child = spawn('psql', ['-X', '-A', '-t', '-q', '-o', '/dev/null', '-c', sql, target], {
      stdio: ['ignore', 'ignore', 'inherit'],
    })
    child.on('exit', (code) => {
      if (code === 0) resolve(performance.now() - from)
      else reject(new Error(`psql failed on ${target}`))
    })
  })
}

const median = (values) => values.slice().sort((a, b) => a - b)[values.length >> 1]
const megabytes = (pid, field) =>
  Number(
    new RegExp(`^${field}:\\s+(\\d+)`, 'm').exec(readFileSync(`/proc/${pid}/status`, 'utf8'))[1],
  ) / 1024

const scattered = 'select * from rows order by amount, id limit 100'
const merged = 'select * from rows order by id'

await load()
const { child, port } = await start()
const through = `postgres://postgres@127.0.0.1:${port}/app`
try {
  const times = { four: [], scatter: [], one: [], merge: [] }
  await psql(through, scattered)
  for (let round = 0; round < ROUNDS; round++) {
    const each = await Promise.all(names.map((name) => psql(urlOf(name), scattered)))
    times.four.push(Math.max(...each))
    times.scatter.push(await psql(through, scattered))
  }
  await psql(through, `${merged} limit 100000`)
  const before = megabytes(child.pid, 'VmRSS')
  for (let round = 0; round < Math.max(1, ROUNDS >> 1); round++) {
    times.one.push(await psql(urlOf('scatter_all'), merged))
    times.merge.push(await psql(through, merged))
  }
  const peak = megabytes(child.pid, 'VmHWM')
  const scatter = median(times.scatter) / median(times.four)
  console.log(
    `scatter with ORDER BY … LIMIT 100: ${median(times.scatter).toFixed(0)} ms, the slowest of four psql ${median(times.four).toFixed(0)} ms: ${scatter.toFixed(2)} times (target ≤ 1.3)`,
  )
  const rate = median(times.one) / median(times.merge)
  console.log(
    `${ROWS} rows in order: ${median(times.merge).toFixed(0)} ms, psql on one database ${median(times.one).toFixed(0)} ms: ${rate.toFixed(2)} of its rate (target ≥ 0.7)`,
  )
  console.log(
    `memory of serve: ${before.toFixed(0)} MB before, ${peak.toFixed(0)} MB at most: ${(peak - before).toFixed(0)} MB (target < 50)`,
  )
  const ms = (times) => `${median(times).toFixed(0)} ms`
  keepRatio({
    what: 'ORDER BY … LIMIT 100 over four shards, against the slowest of four psql at once',
    ours: ms(times.scatter),
    peer: ms(times.four),
    ratio: scatter,
    target: 1.3,
    isLow: true,
  })
  keepRatio({
    what: `${ROWS} rows in order, of the rate of psql on one database`,
    ours: ms(times.merge),
    peer: ms(times.one),
    ratio: rate,
    target: 0.7,
  })
  keepFigure({
    what: 'growth of serve while they pass',
    ours: `${(peak - before).toFixed(0)} MB`,
    target: '< 50 MB',
    holds: peak - before < 50,
  })
} finally {
  child.kill('SIGTERM')
  if (!flags.keep) {
    await new Promise((resolve) => child.once('exit', resolve))
    for (const name of ['scatter_all', ...names])
      await query('postgres', `drop database if exists ${name} with (force)`)
  }
}
