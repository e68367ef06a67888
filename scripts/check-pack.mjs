/**
 * `npm pack` of the tree as it was built (`npm run build` first), then an install into an empty folder, then what a newcomer does there: help, the library with its types, and
 * the whole demo. Prints a line for each step and fails at the first that does not hold. `--no-demo` leaves out the demo.
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '..')
const folder = mkdtempSync(join(tmpdir(), 'pgshard-pack-'))

function run(what, command, args, options = {}) {
  const started = process.hrtime.bigint()
  const result = spawnSync(command, args, { cwd: folder, encoding: 'utf8', ...options })
  const seconds = Number(process.hrtime.bigint() - started) / 1e9
  if (result.status !== 0) {
    process.stderr.write(`${result.stdout}\n${result.stderr}\n`)
    throw new Error(`${what}: ${command} ${args.join(' ')} ended with ${result.status}`)
  }
  console.log(`${what}: ok, ${seconds.toFixed(1)} s`)
  return result.stdout
}

const useLibrary = `
import { BalancedPool, createBalancedPool, EngineError, makeKeyPlacer, openQueryPlanner } from 'pgshard'
import type { QueryPlanner, ShardedTable } from 'pgshard'

const orders: ShardedTable = {
  name: 'orders',
  column: 'customer_id',
  keyType: 'bigint',
  placement: { kind: 'hash', hasher: 'postgres', buckets: 4, bucketMap: [0, 1, 2, 3] },
}
const shard: number = makeKeyPlacer(orders).ofString('42')
const planner: QueryPlanner = await openQueryPlanner({
  sharding: { shardCount: 4, tables: [orders], referenceTables: [], schemas: [], otherTables: 'reference' },
})
const [statement] = planner.plan('SELECT * FROM orders WHERE customer_id = 42').statements
const plan = statement!.route(undefined, { searchPath: ['public'] })
if (plan.how !== 'relay' || plan.target.kind !== 'some' || plan.target.shards[0] !== shard)
  throw new Error('the planner and the placer disagree')
const pool: BalancedPool = createBalancedPool('host=127.0.0.1,127.0.0.1 port=1,2 user=nobody dbname=x connect_timeout=1')
try {
  await pool.query('SELECT 1')
  throw new Error('nobody should have answered')
} catch (error) {
  if (!(error instanceof EngineError)) throw error
} finally {
  await pool.end()
}
`

try {
  const packed = JSON.parse(
    run('pack', 'npm', ['pack', '--json', '--ignore-scripts', '--pack-destination', folder], {
      cwd: root,
    }),
  )
  const [{ filename, files }] = packed
  for (const wanted of [
    'bin/run.js',
    'dist/src/index.js',
    'dist/src/index.d.ts',
    'README.md',
    'docs/man/pgshard.1',
  ])
    if (!files.some(({ path }) => path === wanted)) throw new Error(`the package lacks ${wanted}`)
  const stray = files.filter(({ path }) => /^(?:test|src|commands|fixtures)\//.test(path))
  if (stray.length > 0) throw new Error(`the package holds ${stray[0].path}`)
  console.log(`package: ${files.length} files`)
  writeFileSync(join(folder, 'package.json'), '{"private":true,"type":"module"}\n')
  run('install', 'npm', ['install', '--prefer-offline', '--no-audit', '--no-fund', `./${filename}`])
  const help = run('help', 'npx', ['--no', '--', 'pgshard', '--help'])
  if (!help.includes('serve')) throw new Error('--help names no commands')
  writeFileSync(join(folder, 'use.ts'), useLibrary)
  const require = createRequire(import.meta.url)
  const types = join(root, 'node_modules/@types')
  const flags = [
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'es2023',
    '--skipLibCheck',
    '--typeRoots',
    types,
    '--types',
    'node',
  ]
  run('types', process.execPath, [require.resolve('typescript/bin/tsc'), ...flags, 'use.ts'])
  run('library', process.execPath, ['use.js'])
  if (!process.argv.includes('--no-demo')) {
    const demo = run('demo', 'npx', ['--no', '--', 'pgshard', 'demo'])
    console.log(demo.trimEnd().split('\n').at(-1))
  }
  console.log(`works from ${readdirSync(folder).length} entries of an empty folder`)
} finally {
  rmSync(folder, { recursive: true, force: true })
}
