/**
 * pgshard serve against PgBouncer: `pgbench -S` through both, in front of one PostgreSQL 15, by turns.
 *   node bench/pooler.mjs [--rounds 5] [--seconds 3] [--warm-up 3] [--clients 1,8,32,64,128] [--pool 20] [--scale 10]
 *                         [--only simple,extended,prepared,sharded] [--workers N] [--results FILE] [--json] [--markdown]
 * Starts everything itself (Debian's postgresql-15, pgbouncer; as user postgres when root). Prints the medians of all
 * rounds, transactions a second and CPU a transaction of the pooler, against the targets of the design (§12). Each pooler
 * is used for the warm-up before anything counts. Logins count as CPU of the transactions, so that many clients want more
 * seconds. With --results rows that FILE has are not measured again, and each new
 * one is kept there: a run can be made in pieces (--only, --clients). With --workers CPU is that of all processes.
 * Only ratios of one run mean anything, and only on a machine that does nothing else. Exit 1 when a target is missed.
 */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import {
  at,
  BIN,
  directory,
  fillShards,
  makeShards,
  ROWS_A_SCALE,
  SHARDS,
  startPgBouncer,
  startPostgres,
  startServe,
  stopAll,
} from './pooling/stage.mjs'
import { printMarkdown, printTable } from './pooling/table.mjs'

const { values: options } = parseArgs({
  options: {
    rounds: { type: 'string', default: '5' },
    seconds: { type: 'string', default: '3' },
    'warm-up': { type: 'string', default: '3' },
    clients: { type: 'string', default: '1,8,32,64,128' },
    only: { type: 'string', default: 'simple,extended,prepared,sharded' },
    pool: { type: 'string', default: '20' },
    scale: { type: 'string', default: '10' },
    workers: { type: 'string' },
    results: { type: 'string' },
    json: { type: 'boolean', default: false },
    markdown: { type: 'boolean', default: false },
  },
})
const rounds = Number(options.rounds)
const seconds = Number(options.seconds)
const warmUp = Number(options['warm-up'])
const pool = Number(options.pool)
const counts = options.clients.split(',').map(Number)
const parts = options.only.split(',')
const note = (text) => void (options.json || process.stderr.write(text))

/** design.md §12: [tps at least, CPU a transaction at most] as parts of PgBouncer's. */
const targets = {
  1: [0.85, undefined],
  8: [1.0, undefined],
  32: [1.1, 1.1],
  64: [1.3, 0.8],
  128: [1.3, 0.8],
}
const MANY_CLIENTS = 64
const PREPARED_TARGET = 1.1
const SHARDED_TARGET = 1.0
/** Of what PgBouncer adds to the latency at 1 client. */
const ADDED_LATENCY_TARGET = 2.0

const facts = { rounds, seconds, warmUp, pool, workers: Number(options.workers ?? 1) }
const kept = keptRows()

/** Rows of earlier pieces of the same run. */
function keptRows() {
  if (options.results === undefined || !existsSync(options.results)) return []
  const { rows, ...of } = JSON.parse(readFileSync(options.results, 'utf8'))
  if (JSON.stringify(of) !== JSON.stringify(facts))
    throw new Error(`${options.results} holds a run of other settings: ${JSON.stringify(of)}`)
  return rows
}

function keep(row) {
  kept.push(row)
  if (options.results !== undefined)
    writeFileSync(options.results, `${JSON.stringify({ ...facts, rows: kept }, undefined, 1)}\n`)
}

const isKept = (what, clients) => kept.some((row) => row.what === what && row.clients === clients)

/** utime and stime of a process and each beneath it, in milliseconds by process. */
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
      own.set(Number(name), (Number(fields[11]) + Number(fields[12])) * 10)
    } catch {
      // it has ended meanwhile
    }
  }
  const all = [pid]
  for (const of of all) all.push(...(children.get(of) ?? []))
  return new Map(all.map((of) => [of, own.get(of) ?? 0]))
}

/** One run of pgbench: transactions a second, and CPU a transaction of the pooler, and of each of its processes, in microseconds. */
async function measure(pooler, clients, work, time = seconds) {
  const before = pooler.pid === undefined ? new Map() : cpuMs(pooler.pid)
  const args = ['-n', '-c', String(clients), '-j', String(Math.min(clients, 2)), '-T', String(time)]
  const child = spawn(
    `${BIN}/pgbench`,
    [...at(pooler.port), ...args, '-M', work.protocol, ...work.script, 'postgres'],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, LC_ALL: 'C' } },
  )
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (text += part))
  const code = await new Promise((resolve) => child.on('close', resolve))
  const done = Number(/actually processed: (\d+)/.exec(text)?.[1])
  const tps = Number(/^tps = ([\d.]+)/m.exec(text)?.[1])
  if (code !== 0 || !(done > 0)) throw new Error(`pgbench through ${pooler.name} failed:\n${text}`)
  const after = pooler.pid === undefined ? new Map() : cpuMs(pooler.pid)
  const byProcessUs = [...after].map(([pid, ms]) => ((ms - (before.get(pid) ?? 0)) * 1000) / done)
  return { tps, cpuUs: byProcessUs.reduce((sum, us) => sum + us, 0), byProcessUs }
}

const median = (numbers) => {
  const sorted = [...numbers].sort((a, b) => a - b)
  const middle = sorted.length >> 1
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
}

/** Runs of all poolers by turns; who begins changes from round to round. */
async function compare(poolers, clients, work) {
  for (const pooler of poolers) await warm(pooler, work)
  const samples = poolers.map(() => [])
  for (let round = 0; round < rounds; round++) {
    for (let i = 0; i < poolers.length; i++) {
      const which = (round + i) % poolers.length
      samples[which].push(await measure(poolers[which], clients, work))
    }
    note('.')
  }
  return samples.map((of) => ({
    tps: median(of.map(({ tps }) => tps)),
    cpuUs: median(of.map(({ cpuUs }) => cpuUs)),
    byProcessUs: of[0].byProcessUs.map((_, i) => median(of.map((one) => one.byProcessUs[i] ?? 0))),
  }))
}

const warmed = new Set()
async function warm(pooler, work) {
  const key = `${pooler.port} ${work.protocol}`
  if (pooler.pid === undefined || warmed.has(key) || warmUp === 0) return
  warmed.add(key)
  await measure(pooler, 32, work, warmUp)
}

function judged(row, [tpsTarget, cpuTarget]) {
  const tps = row.pgshard.tps / row.pgbouncer.tps
  const cpu = row.pgshard.cpuUs / row.pgbouncer.cpuUs
  const holds = tps >= tpsTarget && (cpuTarget === undefined || cpu <= cpuTarget)
  return { ...row, ratio: { tps, cpu }, target: { tps: tpsTarget, cpu: cpuTarget ?? null }, holds }
}

const select = (protocol) => ({ protocol, script: ['-S'] })

async function compareClients({ server, pgbouncer, serve }, protocol, clients) {
  note(`\n${protocol}, ${clients} clients `)
  const direct = { name: 'direct', port: server, pid: undefined }
  const poolers = clients === 1 ? [pgbouncer, serve, direct] : [pgbouncer, serve]
  const [theirs, ours, bare] = await compare(poolers, clients, select(protocol))
  const row = { what: protocol, clients, pgbouncer: theirs, pgshard: ours }
  keep(judged(row, targets[clients] ?? [1.0, undefined]))
  if (!bare) return
  const added = (of) => 1e6 / of.tps - 1e6 / bare.tps
  const ratio = added(ours) / added(theirs)
  keep({
    what: `${protocol}, added latency`,
    clients,
    addedUs: { pgbouncer: added(theirs), pgshard: added(ours) },
    ratio: { latency: ratio },
    target: { latency: ADDED_LATENCY_TARGET },
    // where PgBouncer was faster than none, the machine was too busy to tell
    holds: added(theirs) > 0 && ratio <= ADDED_LATENCY_TARGET,
  })
}

const PREPARED = 'prepared, PgBouncer in session mode'

async function comparePrepared({ server, serve }) {
  if (isKept(PREPARED, MANY_CLIENTS)) return
  note(`\nprepared, ${MANY_CLIENTS} clients `)
  const session = await startPgBouncer(server, 'session', MANY_CLIENTS)
  const [theirs, ours] = await compare([session, serve], MANY_CLIENTS, select('prepared'))
  const row = { what: PREPARED, clients: MANY_CLIENTS, pgbouncer: theirs, pgshard: ours }
  keep(judged(row, [PREPARED_TARGET, undefined]))
}

const shardedName = (protocol) =>
  `${SHARDS} shards, key as ${protocol === 'simple' ? 'literal' : 'parameter'}, PgBouncer with one`

/** The same accounts in one database behind PgBouncer, and on four shards behind serve. */
async function compareSharded({ server, pgbouncer }) {
  const left = ['simple', 'extended'].filter((one) => !isKept(shardedName(one), MANY_CLIENTS))
  if (left.length === 0) return
  note('\nfilling the shards')
  const shards = makeShards(server)
  const sharded = await startServe(server, { pool, workers: options.workers, shards })
  fillShards(server, sharded, shards)
  const file = join(directory, 'point-select.sql')
  const rows = ROWS_A_SCALE * Number(options.scale)
  const sql = 'SELECT abalance FROM pgbench_accounts WHERE aid = :aid;'
  writeFileSync(file, `\\set aid random(1, ${rows})\n${sql}\n`)
  for (const protocol of left) {
    const what = shardedName(protocol)
    note(`\n${what}, ${MANY_CLIENTS} clients `)
    const work = { protocol, script: ['-f', file] }
    const [theirs, ours] = await compare([pgbouncer, sharded], MANY_CLIENTS, work)
    const row = { what, clients: MANY_CLIENTS, pgbouncer: theirs, pgshard: ours }
    keep(judged(row, [SHARDED_TARGET, undefined]))
  }
}

try {
  const server = await startPostgres(options.scale)
  const pgbouncer = await startPgBouncer(server, 'transaction', pool)
  const serve = await startServe(server, { pool, workers: options.workers })
  const stage = { server, pgbouncer, serve }
  for (const protocol of ['simple', 'extended'].filter((one) => parts.includes(one)))
    for (const clients of counts)
      if (!isKept(protocol, clients)) await compareClients(stage, protocol, clients)
  if (parts.includes('prepared')) await comparePrepared(stage)
  if (parts.includes('sharded')) await compareSharded(stage)
  note('\n\n')
  if (options.json) console.log(JSON.stringify({ ...facts, rows: kept }))
  else if (options.markdown) printMarkdown(kept)
  else printTable(kept)
  process.exitCode = kept.every((row) => row.holds) ? 0 : 1
} finally {
  await stopAll()
}
