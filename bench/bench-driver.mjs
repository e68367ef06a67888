/**
 * `pgshard bench -S` against `pgbench -S` on one server: transactions a second and CPU a transaction, interleaved rounds, medians.
 *   node bench/bench-driver.mjs [URL] [rounds] [clients] [transactions per client]
 * Without a URL it starts a server of its own. One that is given needs `pgshard bench init` first.
 * Target: tps ≥ 0.9 of pgbench, CPU ≤ 2 times.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { startPostgres, stopAll } from './pooling/stage.mjs'

const own = fileURLToPath(new URL('../bin/run.js', import.meta.url))
const [first, ...others] = process.argv.slice(2)
const hasUrl = first !== undefined && !/^\d+$/.test(first)
const numbers = hasUrl || first === undefined ? others : [first, ...others]
const [rounds = '5', clients = '8', transactions = '20000'] = numbers

function measure(program, argv) {
  const run = spawnSync('/bin/sh', ['-c', '"$0" "$@"; times', program, ...argv], {
    encoding: 'utf8',
  })
  if (run.status !== 0) throw new Error(`${program} failed: ${run.stderr}`)
  const tps = Number(/^tps = ([\d.]+)/m.exec(run.stdout)?.[1])
  const times = run.stdout
    .trim()
    .split('\n')
    .at(-1)
    .match(/[\d.]+/g)
    .map(Number)
  const cpuS = times[0] * 60 + times[1] + times[2] * 60 + times[3]
  return { tps, cpuUs: (cpuS * 1e6) / (Number(clients) * Number(transactions)) }
}

const median = (values) => values.slice().sort((a, b) => a - b)[values.length >> 1]

function compare(url) {
  const load = ['-S', '-n', '-c', clients, '-t', transactions, url]
  const results = { pgbench: [], pgshard: [] }
  for (let round = 0; round < Number(rounds); round++) {
    results.pgbench.push(measure('pgbench', load))
    results.pgshard.push(measure(process.execPath, [own, 'bench', ...load]))
  }
  const line = (name) => {
    const tps = median(results[name].map((one) => one.tps))
    const cpuUs = median(results[name].map((one) => one.cpuUs))
    console.log(`${name}: ${tps.toFixed(0)} tps, ${cpuUs.toFixed(1)} µs of CPU a transaction`)
    return { tps, cpuUs }
  }
  const peer = line('pgbench')
  const ours = line('pgshard')
  console.log(
    `tps ${(ours.tps / peer.tps).toFixed(2)} of pgbench, CPU ${(ours.cpuUs / peer.cpuUs).toFixed(2)} times (start of Node included)`,
  )
}

try {
  compare(hasUrl ? first : `postgres://postgres@127.0.0.1:${await startPostgres('1')}/postgres`)
} finally {
  await stopAll()
}
