/**
 * One process of pgshard serve against several on the same port, by number of clients; nothing else changes.
 *   node bench/fleet.mjs [--workers 1,2] [--clients 8,32,64,128,256] [--seconds 3] [--rounds 1] [--hold S] [--pool 20]
 *                        [--scale 1] [--json]
 * `pgbench -S` through both by turns, on this machine. For each: transactions a second, and the processor time of the
 * pooler, of PostgreSQL and of the generator, with where each reading comes from. --hold drives the largest number of
 * clients so many seconds more and tells the mean. Then the model of fleet/model.mjs with these costs: first against
 * what was measured here, then for machines of their own. docs/fleet.md is made of this.
 */
import { spawn } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { busyCores, oneMachine, threeMachines } from './fleet/model.mjs'
import { printResult } from './fleet/print.mjs'
import { at, BIN, directory, startPostgres, startServe, stopAll } from './pooling/stage.mjs'

const { values: options } = parseArgs({
  options: {
    workers: { type: 'string', default: '1,2' },
    clients: { type: 'string', default: '8,32,64,128,256' },
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '1' },
    hold: { type: 'string', default: '0' },
    pool: { type: 'string', default: '20' },
    scale: { type: 'string', default: '1' },
    json: { type: 'boolean', default: false },
  },
})
const [single, fleet] = options.workers.split(',').map(Number)
const counts = options.clients.split(',').map(Number)
const cores = availableParallelism()

/** The machines for which the model speaks; those of the study that it is held against had 16 cores for the pooler. */
const MACHINES = { poolerCores: 16, serverCores: 32, generatorCores: 32, delayUs: 200 }
const MODEL_WORKERS = 16
/** Fleet over single at these clients, measured elsewhere (rows H8 to H12). */
const ELSEWHERE = { 8: 0.72, 32: 1.19, 64: 2.53, 128: 3.84, 256: 4.38 }

const sources = {
  process: 'user and system time of each process of the tier, /proc/PID/stat',
  machine: 'busy time of all cores, /proc/stat, as the system itself counts',
  provider: 'not read: what a provider shows of a machine is another reading, and may be higher',
}

const TICK_MS = 10

function processes() {
  return readdirSync('/proc').flatMap((name) => {
    if (!/^\d+$/.test(name)) return []
    try {
      const stat = readFileSync(`/proc/${name}/stat`, 'latin1')
      const fields = stat.replace(/^.*\) /, '').split(' ')
      const ms = (Number(fields[11]) + Number(fields[12])) * TICK_MS
      // what ended children took is told by their parent
      const reaped = (Number(fields[13]) + Number(fields[14])) * TICK_MS
      return [{ pid: Number(name), parent: Number(fields[1]), ms, reaped }]
    } catch {
      return []
    }
  })
}

/** Milliseconds of a process and all beneath it, the most that one process took, and those that have ended. */
function cpuOf(all, pid) {
  const beneath = [pid]
  for (const of of beneath)
    beneath.push(...all.filter(({ parent }) => parent === of).map((one) => one.pid))
  return new Map(all.filter((one) => beneath.includes(one.pid)).map((one) => [one.pid, one]))
}

function machineMs() {
  const fields = readFileSync('/proc/stat', 'latin1')
    .split('\n')[0]
    .trim()
    .split(/\s+/)
    .slice(1)
    .map(Number)
  const idle = fields[3] + fields[4]
  return { busy: (fields.slice(0, 8).reduce((sum, one) => sum + one, 0) - idle) * TICK_MS }
}

function spent(before, after) {
  const each = [...after].map(([pid, { ms }]) => ms - (before.get(pid)?.ms ?? 0))
  return { total: each.reduce((sum, one) => sum + one, 0), most: Math.max(0, ...each) }
}

async function measure(serve, clients, seconds) {
  const postmaster = Number(
    readFileSync(join(directory, 'data/postmaster.pid'), 'utf8').split('\n')[0],
  )
  const before = { all: processes(), machine: machineMs(), at: performance.now() }
  const child = spawn(
    `${BIN}/pgbench`,
    [
      ...at(serve.port),
      '-n',
      '-S',
      '-c',
      String(clients),
      '-j',
      '2',
      '-T',
      String(seconds),
      'postgres',
    ],
    { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, LC_ALL: 'C' } },
  )
  let text = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (part) => (text += part))
  let generatorMs = 0
  const watch = setInterval(() => {
    const one = processes().find(({ pid }) => pid === child.pid)
    generatorMs = Math.max(generatorMs, one?.ms ?? 0)
  }, 250)
  const code = await new Promise((resolve) => child.on('close', resolve))
  clearInterval(watch)
  const wallMs = performance.now() - before.at
  const done = Number(/actually processed: (\d+)/.exec(text)?.[1])
  const tps = Number(/^tps = ([\d.]+)/m.exec(text)?.[1])
  if (code !== 0 || !(done > 0)) throw new Error(`pgbench through ${serve.name} failed:\n${text}`)
  const after = processes()
  const pooler = spent(cpuOf(before.all, serve.pid), cpuOf(after, serve.pid))
  const database = spent(cpuOf(before.all, postmaster), cpuOf(after, postmaster))
  const busy = (ms) => ms / wallMs
  const tiers = {
    pooler: busy(pooler.total),
    postgres: busy(database.total),
    generator: busy(generatorMs),
  }
  const us = (ms) => (ms * 1000) / done
  return {
    tps,
    busy_cores: tiers,
    busiest_tier: Object.entries(tiers).sort(([, a], [, b]) => b - a)[0][0],
    busiest_pooler_process: busy(pooler.most),
    machine_busy_cores: busy(machineMs().busy - before.machine.busy),
    us_a_transaction: {
      pooler: us(pooler.total),
      postgres: us(database.total),
      generator: us(generatorMs),
    },
  }
}

const median = (values) => values.slice().sort((a, b) => a - b)[values.length >> 1]
/** The run of median speed. */
const middle = (runs) => runs.find(({ tps }) => tps === median(runs.map((one) => one.tps)))

async function sweep(serves) {
  const rows = []
  for (const clients of counts) {
    const runs = serves.map(() => [])
    for (let round = 0; round < Number(options.rounds); round++)
      for (let i = 0; i < serves.length; i++) {
        const which = (round + i) % serves.length
        runs[which].push(await measure(serves[which], clients, options.seconds))
      }
    const [one, several] = runs.map(middle)
    rows.push({ clients, single: one, fleet: several, ratio: several.tps / one.tps })
  }
  return rows
}

async function held(serves) {
  if (!(Number(options.hold) > 0)) return null
  const clients = Math.max(...counts)
  const [one, several] = [
    await measure(serves[0], clients, options.hold),
    await measure(serves[1], clients, options.hold),
  ]
  return { clients, seconds: Number(options.hold), single: one, fleet: several }
}

/** Costs of a transaction in the tiers, from the row of 64 clients or the nearest: where all are at work and none waits long. */
function costsOf(rows, which) {
  const near = [...rows].sort((a, b) => Math.abs(a.clients - 64) - Math.abs(b.clients - 64))[0]
  const { pooler, postgres, generator } = near[which].us_a_transaction
  return { poolerUs: pooler, serverUs: postgres, generatorUs: generator }
}

function modelled(rows) {
  const costs = { single: costsOf(rows, 'single'), fleet: costsOf(rows, 'fleet') }
  const here = rows.map(({ clients, single: one, fleet: several }) => ({
    clients,
    single: oneMachine(costs.single, { cores, workers: single, clients }) / one.tps,
    fleet: oneMachine(costs.fleet, { cores, workers: fleet, clients }) / several.tps,
  }))
  const elsewhere = [8, 32, 64, 128, 256].map((clients) => {
    const one = threeMachines(costs.single, MACHINES, { workers: 1, clients })
    const several = threeMachines(costs.fleet, MACHINES, { workers: MODEL_WORKERS, clients })
    return {
      clients,
      single_tps: one,
      fleet_tps: several,
      ratio: several / one,
      ratio_measured_elsewhere: ELSEWHERE[clients],
      fleet_pooler_busy_cores: busyCores(costs.fleet.poolerUs, several),
    }
  })
  return { costs_us: costs, against_measured_here: here, machines: MACHINES, elsewhere }
}

try {
  const server = await startPostgres(options.scale)
  const { pool } = options
  const serves = []
  for (const workers of [single, fleet])
    serves.push(
      await startServe(server, { pool, ...(workers > 1 ? { workers: String(workers) } : {}) }),
    )
  for (const serve of serves) await measure(serve, Math.min(32, counts.at(-1)), '3')
  const rows = await sweep(serves)
  const hold = await held(serves)
  const result = {
    cores,
    model_workers: MODEL_WORKERS,
    workers: { single, fleet },
    configuration: {
      pool: Number(pool),
      scale: Number(options.scale),
      load: 'pgbench -S, transaction pooling, simple protocol',
      seconds: Number(options.seconds),
      rounds: Number(options.rounds),
    },
    cpu_sources: sources,
    rows,
    hold,
    model: modelled(rows),
  }
  if (options.json) console.log(JSON.stringify(result))
  else printResult(result)
} finally {
  await stopAll()
}
