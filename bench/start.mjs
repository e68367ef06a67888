/**
 * How long commands that need no server take, from their start to their end: `pgshard --help` and `pgshard route`.
 *   node bench/start.mjs [rounds] [--results FILE]
 * Medians of the wall time, 9 rounds. Targets (design §12): 300 ms and 500 ms. It needs a build.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { keepFigure } from './results.mjs'

const rounds = Number(process.argv[2] ?? 9)
const own = fileURLToPath(new URL('../bin/run.js', import.meta.url))
const directory = mkdtempSync(join(tmpdir(), 'pgshard-bench-start-'))
const config = join(directory, 'pgdog.toml')
const hosts = [0, 1].map(
  (shard) =>
    `[[databases]]\nname = "app"\nhost = "127.0.0.1"\nport = ${5440 + shard}\nshard = ${shard}\n`,
)
writeFileSync(
  config,
  `${hosts.join('')}[[sharded_tables]]\ndatabase = "app"\nname = "orders"\ncolumn = "customer_id"\n`,
)
writeFileSync(join(directory, 'users.toml'), '')

function wallMs(argv) {
  const from = performance.now()
  const { status, stderr } = spawnSync(process.execPath, [own, ...argv], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`${argv.join(' ')}: ${stderr}`)
  return performance.now() - from
}

const median = (values) => values.slice().sort((a, b) => a - b)[values.length >> 1]
const commands = [
  ['pgshard --help', 300, ['--help']],
  ['pgshard route', 500, ['route', '-c', config, 'SELECT * FROM orders WHERE customer_id = 7']],
]
try {
  for (const [what, target, argv] of commands) {
    const ms = median(Array.from({ length: rounds }, () => wallMs(argv)))
    console.log(`${what}: ${ms.toFixed(0)} ms (target ≤ ${target})`)
    keepFigure({ what, ours: `${ms.toFixed(0)} ms`, target: `≤ ${target} ms`, holds: ms <= target })
  }
} finally {
  rmSync(directory, { recursive: true, force: true })
}
