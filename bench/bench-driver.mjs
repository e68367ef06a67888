/**
 * `pgshard bench -S` against `pgbench -S` on one server: transactions a second and CPU a transaction, interleaved rounds, medians.
 *   node bench/bench-driver.mjs postgres://postgres@127.0.0.1:5432/postgres [rounds] [clients] [transactions per client]
 * The server needs `pgshard bench init` first. Target: tps ≥ 0.9 of pgbench, CPU ≤ 2 times.
 */
import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'

const [url, rounds = '5', clients = '8', transactions = '20000'] = process.argv.slice(2)
if (url === undefined) {
  console.error(
    'usage: node bench/bench-driver.mjs URL [rounds] [clients] [transactions per client]',
  )
  process.exit(2)
}
const own = fileURLToPath(new URL('../bin/run.js', import.meta.url))
const load = ['-S', '-n', '-c', clients, '-t', transactions, url]

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
