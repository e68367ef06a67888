/**
 * A transaction that writes two shards against two that write one each, one after the other, through serve. Target of the
 * design (§12): at most 2.0 times the latency. Durable servers, as PostgreSQL is by default:
 *   node bench/two-phase.mjs postgres://postgres@127.0.0.1:5432/postgres [SECOND-SERVER-URL] [--rounds 7] [--seconds 2] [--results FILE]
 * With one URL both shards are databases of one server; with two each has its own. fsync must be on. The phases of the
 * commit are timed on direct connections beside it. Rounds are interleaved and medians taken. It needs a build.
 */
import { spawn } from 'node:child_process'
import { mkdtempSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import pg from 'pg'
import { makeKeyPlacer } from '../dist/src/sharding/key-placer.js'
import { keepRatio } from './results.mjs'

const { values: flags, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    rounds: { type: 'string', default: '7' },
    seconds: { type: 'string', default: '2' },
  },
})
const [first, second = first] = positionals
if (first === undefined) {
  console.error('usage: node bench/two-phase.mjs URL [URL] [--rounds N] [--seconds N]')
  process.exit(2)
}
const ROUNDS = Number(flags.rounds)
const ROUND_MS = Number(flags.seconds) * 1000
const names = ['two_phase_0', 'two_phase_1']
const urls = [first, second]
const own = fileURLToPath(new URL('../bin/run.js', import.meta.url))
const urlOf = (server, database) => {
  const at = new URL(server)
  at.pathname = `/${database}`
  return at.href
}

async function connect(url) {
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return client
}

async function query(url, sql) {
  const client = await connect(url)
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

const placer = makeKeyPlacer({
  column: 'k',
  keyType: 'bigint',
  placement: { kind: 'hash', hasher: 'postgres', buckets: 2, bucketMap: [0, 1] },
})
const ids = Array.from({ length: 400 }, (_, i) => i + 1)
const keys = names.map((_, shard) => ids.filter((id) => placer.ofString(String(id)) === shard))

async function load() {
  for (const [shard, name] of names.entries()) {
    const server = urls[shard]
    const [{ fsync, commit, most }] = await query(
      server,
      `select current_setting('fsync') as fsync, current_setting('synchronous_commit') as commit,
       current_setting('max_prepared_transactions')::int as most`,
    )
    if (fsync !== 'on' || commit !== 'on' || most === 0)
      throw new Error(
        `${server}: fsync ${fsync}, synchronous_commit ${commit}, max_prepared_transactions ${most}`,
      )
    await query(server, `drop database if exists ${name} with (force)`)
    await query(server, `create database ${name}`)
    const rows = keys[shard].map((k) => `(${k}, 0)`).join(', ')
    await query(
      urlOf(server, name),
      `create table account (k bigint primary key, v int); insert into account values ${rows}`,
    )
  }
}

function configure() {
  const directory = mkdtempSync(join(tmpdir(), 'pgshard-two-phase-'))
  const lines = ['[general]', 'host = "127.0.0.1"', 'port = 0', 'auth_type = "trust"', '']
  for (const [shard, name] of names.entries()) {
    const { hostname, port } = new URL(urls[shard])
    lines.push('[[databases]]', 'name = "app"', `host = "${hostname}"`, `port = ${port}`)
    lines.push(`database_name = "${name}"`, `shard = ${shard}`, '')
  }
  lines.push('[[sharded_tables]]', 'database = "app"', 'name = "account"', 'column = "k"')
  lines.push('data_type = "bigint"', '')
  const configPath = join(directory, 'pgdog.toml')
  const usersPath = join(directory, 'users.toml')
  writeFileSync(configPath, lines.join('\n'))
  writeFileSync(usersPath, '[[users]]\nname = "postgres"\ndatabase = "app"\n')
  return ['--config', configPath, '--users', usersPath]
}

/** A run of the program; for serve once it has said where it listens. */
function run(args, isServer) {
  const child = spawn(process.execPath, [own, ...args], { stdio: ['ignore', 'pipe', 'pipe'] })
  return new Promise((resolve, reject) => {
    let said = ''
    const hear = (chunk) => {
      said += chunk
      const port = /listening on \S+:(\d+)/.exec(said)?.[1]
      if (isServer && port) resolve({ child, port })
    }
    child.stdout.on('data', hear)
    child.stderr.on('data', hear)
    child.on('exit', (code) => {
      if (!isServer && code === 0) resolve()
      else reject(new Error(`${args[0]} ended:\n${said}`))
    })
  })
}

const UPDATE = { name: 'u', text: 'update account set v = v + 1 where k = $1' }

/** Milliseconds of each run of `work` within one round. */
async function timed(work) {
  const times = []
  const end = performance.now() + ROUND_MS
  for (let n = 0; performance.now() < end; n++) {
    const from = performance.now()
    await work(n)
    times.push(performance.now() - from)
  }
  return times
}

const median = (values) => values.slice().sort((a, b) => a - b)[values.length >> 1]
const keyOf = (shard, n) => keys[shard][n % keys[shard].length]

/** What the servers alone need for the steps of one commit: ready, PREPARE, the decision's COMMIT, COMMIT PREPARED. */
async function bareSteps() {
  const clients = await Promise.all(names.map((name, shard) => connect(urlOf(urls[shard], name))))
  const times = await timed(async (n) => {
    for (const [shard, client] of clients.entries()) {
      await client.query('begin')
      await client.query({ ...UPDATE, values: [keyOf(shard, n)] })
    }
    await Promise.all(clients.map((client) => client.query('set constraints all immediate')))
    await clients[1].query(`prepare transaction 'bare ${n}'`)
    await clients[0].query('commit')
    await clients[1].query(`commit prepared 'bare ${n}'`)
  })
  await Promise.all(clients.map((client) => client.end()))
  return times
}

await load()
const place = configure()
await run(['setup', ...place], false)
const { child, port } = await run(['serve', ...place], true)
const client = await connect(`postgres://postgres@127.0.0.1:${port}/app`)
try {
  const update = (shard, n) => client.query({ ...UPDATE, values: [keyOf(shard, n)] })
  const two = async (n) => {
    await client.query('begin')
    await update(0, n)
    await update(1, n)
    await client.query('commit')
  }
  const one = async (n) => {
    for (const shard of [0, 1]) {
      await client.query('begin')
      await update(shard, n)
      await client.query('commit')
    }
  }
  for (let n = 0; n < 20; n++) {
    await two(n)
    await one(n)
  }
  const medians = { two: [], one: [] }
  for (let round = 0; round < ROUNDS; round++) {
    medians.one.push(median(await timed(one)))
    medians.two.push(median(await timed(two)))
  }
  const ratio = median(medians.two.map((time, i) => time / medians.one[i]))
  const each = (values) => values.map((value) => value.toFixed(2)).join(', ')
  console.log(`two shards in one transaction: ${each(medians.two)} ms`)
  console.log(`two transactions one after the other: ${each(medians.one)} ms`)
  console.log(`bare steps on direct connections: ${median(await bareSteps()).toFixed(2)} ms`)
  console.log(
    `two-phase commit over 2 shards: ${ratio.toFixed(2)} times two single commits (target ≤ 2.0)`,
  )
  keepRatio({
    what: 'a transaction that writes two shards, against two that write one each, one after the other',
    ours: `${median(medians.two).toFixed(2)} ms`,
    peer: `${median(medians.one).toFixed(2)} ms`,
    ratio,
    target: 2,
    isLow: true,
  })
} finally {
  await client.end()
  child.kill('SIGTERM')
  await new Promise((resolve) => child.once('exit', resolve))
  for (const [shard, name] of names.entries())
    await query(urls[shard], `drop database if exists ${name} with (force)`)
}
