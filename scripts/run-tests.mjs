/**
 * Runs the suites one after another, each with a budget, and ends with one line "N passed, N failed".
 *   --quick      fixed seeds, small sizes (npm test); the default
 *   --full       the sizes that the issues name; writes docs/test-report.md
 *   --only a,b   these suites alone
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { createRequire } from 'node:module'
import { cpus, tmpdir, totalmem, userInfo } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = join(dirname(fileURLToPath(import.meta.url)), '..')
process.chdir(root)
const require = createRequire(import.meta.url)
const vitest = join(dirname(require.resolve('vitest/package.json')), 'vitest.mjs')

/** Minutes that a suite may take; quick ones stay below the time that .ci/run has. `program`: it starts the built program. */
const suites = [
  { name: 'unit', quick: 3, full: 5 },
  { name: 'property', quick: 2, full: 30 },
  { name: 'rules', quick: 1, full: 2 },
  { name: 'db', program: true, quick: 19, full: 60 },
  { name: 'oracle', program: true, quick: 5, full: 60 },
  { name: 'cli', program: true, quick: 3, full: 10 },
  { name: 'scenario', program: true, quick: 15, full: 120 },
]

/** Tests that may need their second attempt in one run (`retry` in vitest.config.ts); more is a failure. */
const repeatable = 4

const size = process.argv.includes('--full') ? 'full' : 'quick'
const onlyAt = process.argv.indexOf('--only')
const only = onlyAt === -1 ? undefined : process.argv[onlyAt + 1]?.split(',')
const chosen = suites.filter(({ name }) => !only || only.includes(name))

const say = (text) => process.stdout.write(`${text}\n`)
const seconds = (ms) => `${(ms / 1000).toFixed(1)} s`

function newest(path) {
  if (!existsSync(path)) return 0
  const stat = statSync(path)
  if (!stat.isDirectory()) return stat.mtimeMs
  return readdirSync(path).reduce((latest, name) => Math.max(latest, newest(join(path, name))), 0)
}

/** Tests start the built program, so it must not be older than what it is built from. */
function buildWhenOld() {
  const sources = ['src', 'commands', 'tsconfig.json', 'tsconfig.build.json', 'package.json']
  const changed = Math.max(...sources.map(newest))
  if (
    existsSync('oclif.manifest.json') &&
    newest('dist') > 0 &&
    newest('oclif.manifest.json') >= changed
  )
    return
  say('building: dist/ is older than the sources')
  const { status } = spawnSync(process.execPath, ['scripts/build.mjs'], { stdio: 'inherit' })
  if (status === 0) return
  say('the build failed: see above')
  say('0 passed, 1 failed')
  process.exit(1)
}

/** Runs one suite; what it printed passes through, its counts come from vitest's JSON. */
function runSuite(suite, reportFile) {
  const begin = performance.now()
  const budgetMs = suite[size] * 60_000
  const parameters = [
    vitest,
    'run',
    '--project',
    suite.name,
    '--passWithNoTests',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${reportFile}`,
  ]
  const child = spawn(process.execPath, parameters, {
    env: { ...process.env, PGSHARD_TEST_SIZE: size },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true, // a group of its own, so that all of it can be ended
  })
  running = child
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output += chunk
      process.stdout.write(chunk)
    })
  let isLate = false
  const timer = setTimeout(() => {
    isLate = true
    endGroup(child)
  }, budgetMs)
  return new Promise((resolve) => {
    child.once('exit', (code) => {
      clearTimeout(timer)
      running = undefined
      const result = { ...suite, ms: performance.now() - begin, ...countTests(reportFile) }
      result.notes = [...new Set(output.match(/^.*SKIPPED: .*$/gm) ?? [])]
      if (isLate) fail(result, `suite ${suite.name} was not done in its ${suite[size]} minutes`)
      else if (code !== 0 && result.failed === 0)
        fail(result, `suite ${suite.name} ended with ${code}; see above`)
      resolve(result)
    })
  })
}

function fail(result, why) {
  result.failed++
  result.failures.push(why)
}

function countTests(reportFile) {
  const counts = { passed: 0, failed: 0, skipped: 0, failures: [], skips: [], repeated: [] }
  if (!existsSync(reportFile)) return counts
  for (const file of JSON.parse(readFileSync(reportFile, 'utf8')).testResults) {
    const where = file.name.startsWith(root) ? file.name.slice(root.length + 1) : file.name
    for (const test of file.assertionResults) countTest(counts, where, test)
    const hasOwnFailure = file.assertionResults.some(({ status }) => status === 'failed')
    if (file.status === 'failed' && !hasOwnFailure)
      fail(counts, `${where}: ${file.message.split('\n')[0]}`)
  }
  return counts
}

function countTest(counts, where, test) {
  const name = `${where}: ${test.fullName.trim()}`
  const why = firstLines(test.failureMessages)
  if (test.status === 'failed') fail(counts, `${name}${why}`)
  else if (test.status === 'passed') {
    counts.passed++
    if (why !== '') counts.repeated.push(`${name}${why}`)
  } else {
    counts.skipped++
    counts.skips.push(name)
  }
}

/** What is needed to know a failure again from the end of a log alone. */
const firstLines = (messages = []) =>
  messages.map((message) => `\n    ${message.split('\n').slice(0, 8).join('\n    ')}`).join('')

let running
function endGroup(child) {
  try {
    process.kill(-child.pid, 'SIGTERM')
    setTimeout(() => {
      try {
        process.kill(-child.pid, 'SIGKILL')
      } catch {
        // it is gone
      }
    }, 10_000).unref()
  } catch {
    // it is gone
  }
}
for (const signal of ['SIGINT', 'SIGTERM'])
  process.once(signal, () => {
    if (running) endGroup(running)
    process.exitCode = 130
    setTimeout(() => process.exit(130), 11_000).unref()
  })

function git(...parameters) {
  try {
    return execFileSync('git', parameters, {
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim()
  } catch {
    return 'unknown'
  }
}

function writeReport(results, total) {
  const changed = git('status', '--porcelain') === '' ? '' : ' with local changes'
  const lines = [
    '# Test report',
    '',
    'Written by `npm run test:full`.',
    '',
    `- commit ${git('rev-parse', 'HEAD')}${changed}`,
    `- ${new Date().toISOString().slice(0, 10)}, Node ${process.version}, ${process.platform} ${process.arch}`,
    `- ${cpus().length} cores (${cpus()[0]?.model.trim()}), ${Math.round(totalmem() / 2 ** 30)} GB, as ${userInfo().uid === 0 ? 'root' : 'an ordinary user'}`,
    '',
    '| suite | passed | failed | skipped | time | budget |',
    '|---|---:|---:|---:|---:|---:|',
    ...results.map(
      (r) =>
        `| ${r.name} | ${r.passed} | ${r.failed} | ${r.skipped} | ${seconds(r.ms)} | ${r[size]} min |`,
    ),
    `| all | ${total.passed} | ${total.failed} | ${total.skipped} | ${seconds(total.ms)} | |`,
    '',
    ...section('Passed at the second attempt', repeated),
    ...section(
      'Failed',
      results.flatMap((r) => r.failures),
    ),
    ...section(
      'Skipped',
      results.flatMap((r) => [...r.notes, ...r.skips]),
    ),
  ]
  writeFileSync('docs/test-report.md', lines.join('\n'))
}

const section = (title, items) =>
  items.length === 0 ? [] : [`## ${title}`, '', ...items.map((item) => `- ${item}`), '']

if (chosen.some(({ program }) => program)) buildWhenOld()
const scratch = mkdtempSync(join(tmpdir(), 'pgshard-results-'))
const results = []
for (const suite of chosen) {
  if (process.exitCode === 130) break
  say(`\n=== ${suite.name} (${size}, budget ${suite[size]} min) ===`)
  const result = await runSuite(suite, join(scratch, `${suite.name}.json`))
  results.push(result)
  say(
    `--- ${suite.name}: ${result.passed} passed, ${result.failed} failed, ${result.skipped} skipped in ${seconds(result.ms)} of ${suite[size]} min`,
  )
}
rmSync(scratch, { recursive: true, force: true })
const repeated = results.flatMap((r) => r.repeated)
if (repeated.length > repeatable)
  fail(results[0], `${repeated.length} tests needed a second attempt; at most ${repeatable} may`)

const sum = (key) => results.reduce((total, result) => total + result[key], 0)
const total = {
  passed: sum('passed'),
  failed: sum('failed'),
  skipped: sum('skipped'),
  ms: sum('ms'),
}
say('')
for (const line of section(
  'Skipped',
  results.flatMap((r) => [...r.notes, ...r.skips]),
))
  say(line)
for (const line of section('Passed at the second attempt', repeated)) say(line)
for (const line of section(
  'Failed',
  results.flatMap((r) => r.failures),
))
  say(line)
if (size === 'full') writeReport(results, total)
for (const { name, passed, failed, skipped, ms, ...rest } of results)
  say(
    `${name.padEnd(10)} ${String(passed).padStart(6)} passed ${String(failed).padStart(4)} failed ${String(skipped).padStart(4)} skipped ${seconds(ms).padStart(9)} of ${rest[size]} min`,
  )
say(
  `${total.passed} passed, ${total.failed} failed${total.skipped > 0 ? `, ${total.skipped} skipped` : ''}`,
)
if (process.exitCode !== 130) process.exitCode = total.failed > 0 || total.passed === 0 ? 1 : 0
