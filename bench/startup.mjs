/**
 * How long the short commands take. Targets of the design (§12): `pgshard --help` at most 300 ms, `route` at most 500 ms.
 *   node bench/startup.mjs [--runs 10] [--check]
 * Medians of whole processes, one after the other. `--check` exits 1 when a target is missed.
 * It needs a build; no server is asked.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'

const { values: flags } = parseArgs({
  options: { runs: { type: 'string', default: '10' }, check: { type: 'boolean', default: false } },
})
const runs = Number(flags.runs)
const own = fileURLToPath(new URL('../bin/run.js', import.meta.url))
const folder = mkdtempSync(join(tmpdir(), 'pgshard-startup-'))
const config = join(folder, 'pgdog.toml')
const users = join(folder, 'users.toml')
const shard = (number) =>
  `[[databases]]\nname = "app"\nhost = "127.0.0.1"\ndatabase_name = "s${number}"\nshard = ${number}\n`
writeFileSync(
  config,
  `${[0, 1, 2, 3].map(shard).join('')}[[sharded_tables]]\ndatabase = "app"\nname = "users"\ncolumn = "id"\n`,
)
writeFileSync(users, '[[users]]\nname = "app"\ndatabase = "app"\npassword = "app"\n')

const routed = 'SELECT * FROM users WHERE id = 42'
const commands = [
  { name: 'pgshard --help', args: ['--help'], target: 300 },
  {
    name: 'pgshard route',
    args: ['route', '--config', config, '--users', users, '--database', 'app', routed],
    target: 500,
  },
]

const median = (values) => values.sort((a, b) => a - b)[Math.floor(values.length / 2)]

function timed(args) {
  const begun = performance.now()
  const { status, stderr } = spawnSync(process.execPath, [own, ...args], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`pgshard ${args.join(' ')} ended with ${status}: ${stderr}`)
  return performance.now() - begun
}

let missed = false
try {
  for (const { name, args, target } of commands) {
    timed(args)
    const walls = Array.from({ length: runs }, () => timed(args))
    const wall = median(walls)
    missed ||= wall > target
    console.log(`${name}: median ${Math.round(wall)} ms of ${runs} runs (target ${target} ms)`)
  }
} finally {
  rmSync(folder, { recursive: true })
}
if (flags.check && missed) process.exitCode = 1
