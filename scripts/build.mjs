/** Compiles src and commands to dist and writes oclif's manifest; `--loose` emits in spite of type errors (while several people build at once). */
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'

const require = createRequire(import.meta.url)
const loose = process.argv.includes('--loose')

if (!existsSync('tsconfig.build.json')) process.exit(0) // an installed package brings its dist with it
let tsc
try {
  tsc = require.resolve('typescript/bin/tsc')
} catch {
  console.error(
    'pgshard: building needs the development dependencies; run "npm ci" without --omit=dev',
  )
  process.exit(existsSync('dist') ? 0 : 1)
}
if (!loose) rmSync('dist', { recursive: true, force: true })
const env = { ...process.env, OCLIF_SKIP_NEW_VERSION_CHECK: 'true' }
const node = (args) => spawnSync(process.execPath, args, { stdio: 'inherit', env }).status ?? 1
const status = node([
  tsc,
  '-p',
  'tsconfig.build.json',
  ...(loose ? ['--noEmitOnError', 'false'] : []),
])
if (status !== 0 && !loose) process.exit(status)
// what browsers get is not compiled
for (const folder of ['src/report/browser', 'src/web/page'])
  if (existsSync(folder)) cpSync(folder, `dist/${folder}`, { recursive: true })
process.exit(node([require.resolve('oclif/bin/run.js'), 'manifest']) && !loose ? 1 : 0)
