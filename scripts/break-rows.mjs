/**
 * Breaks the code of one row of fixtures/requirements.tsv at a time, in a copy of this repository's last commit, runs the
 * tests that name the row and says whether one of them fails. Exit 1 when more than one row in fifteen is not caught.
 *   --rows D1,X2   only these of scripts/broken-rows.json
 *   --count N      so many of them, picked at random by --seed (default 1)
 *   --control      runs the same tests with nothing broken: all must pass
 */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import ts from 'typescript'
import { readTests, rowsOfTitle } from './read-tests.mjs'

const home = join(dirname(fileURLToPath(import.meta.url)), '..')
const { values: flags } = parseArgs({
  options: {
    rows: { type: 'string' },
    count: { type: 'string' },
    seed: { type: 'string', default: '1' },
    control: { type: 'boolean', default: false },
  },
})

/** The cheapest first: one that fails is enough. */
const SUITES = ['rules', 'unit', 'property', 'db', 'oracle', 'cli', 'scenario']
const FILE_MS = 300_000
const suiteOf = (file) => file.split('/')[1]

/** In place, by a small generator of its own, so that a seed names the same rows everywhere. */
function shuffle(items, seed) {
  let state = seed >>> 0
  for (let i = items.length - 1; i > 0; i--) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    const j = Math.floor((state / 2 ** 32) * (i + 1))
    ;[items[i], items[j]] = [items[j], items[i]]
  }
  return items
}

function chosen() {
  const all = JSON.parse(readFileSync(join(home, 'scripts/broken-rows.json'), 'utf8'))
  const named = flags.rows?.split(',')
  if (named) return all.filter(({ row }) => named.includes(row))
  return flags.count === undefined
    ? all
    : shuffle(all, Number(flags.seed)).slice(0, Number(flags.count))
}

function openCopy() {
  const root = mkdtempSync(join(tmpdir(), 'pgshard-rows-'))
  const run = (command, args, cwd) => {
    const { status, stderr } = spawnSync(command, args, { cwd, encoding: 'utf8' })
    if (status !== 0) throw new Error(`${command} ${args.join(' ')}: ${stderr}`)
  }
  run('git', ['clone', '--quiet', home, root], home)
  symlinkSync(join(home, 'node_modules'), join(root, 'node_modules'))
  run(process.execPath, ['scripts/build.mjs', '--loose'], root)
  return root
}

/** `serve` and the other commands are run as they are built. */
function emit(root, file) {
  const { outputText } = ts.transpileModule(readFileSync(join(root, file), 'utf8'), {
    compilerOptions: { target: 'ES2023', module: 'ESNext', verbatimModuleSyntax: true },
  })
  writeFileSync(join(root, 'dist', file.replace(/\.ts$/, '.js')), outputText)
}

/** Changes the files; gives back what undoes it. @throws when a text to be changed is not there exactly once */
function breakCode(root, changes) {
  const before = new Map()
  const restore = () => {
    for (const [file, text] of before) {
      writeFileSync(join(root, file), text)
      emit(root, file)
    }
  }
  for (const { file, find, replace } of changes) {
    const text = readFileSync(join(root, file), 'utf8')
    if (!before.has(file)) before.set(file, text)
    if (text.split(find).length !== 2) {
      restore()
      throw new Error(`not once in ${file}: ${find}`)
    }
    writeFileSync(
      join(root, file),
      text.replace(find, () => replace),
    )
  }
  for (const file of before.keys()) emit(root, file)
  return restore
}

/** The tests of a file that name the row: how many ran, and the first that failed. */
function runFile(root, file, row) {
  const report = join(root, 'row-report.json')
  rmSync(report, { force: true })
  // titles that name the row alone, in a list, or in a range
  const pattern = `\\b${row}\\b|[A-Z]\\d+\\s*[–-]\\s*[A-Z]?\\d+`
  const args = ['vitest', 'run', '--project', suiteOf(file), file, '-t', pattern]
  spawnSync('npx', [...args, '--retry=0', '--reporter=json', `--outputFile=${report}`], {
    cwd: root,
    stdio: 'ignore',
    timeout: FILE_MS,
  })
  const { testResults } = JSON.parse(readFileSync(report, 'utf8'))
  const naming = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ ancestorTitles, title }) =>
      [...ancestorTitles, title].some((one) => rowsOfTitle(one).includes(row)),
    )
    .filter(({ status }) => status === 'passed' || status === 'failed')
  return { ran: naming.length, failed: naming.find(({ status }) => status === 'failed')?.title }
}

function verdictOf(root, row) {
  const files = readTests(root)
    .filter((test) => test.rows.includes(row) && test.checks && !test.skipped)
    .map(({ file }) => file)
    .sort((a, b) => SUITES.indexOf(suiteOf(a)) - SUITES.indexOf(suiteOf(b)))
  let ran = 0
  for (const file of new Set(files)) {
    const result = runFile(root, file, row)
    ran += result.ran
    if (result.failed !== undefined) return { ran, caught: `${file}: ${result.failed}` }
  }
  return { ran }
}

const root = openCopy()
process.once('exit', () => rmSync(root, { recursive: true, force: true }))
const all = chosen()
let missed = 0
for (const { row, changes } of all) {
  const restore = flags.control ? () => undefined : breakCode(root, changes)
  const { ran, caught } = verdictOf(root, row)
  restore()
  const isGood = ran > 0 && (caught === undefined) === flags.control
  if (!isGood) missed++
  const words = caught ?? `${ran} tests pass`
  process.stdout.write(`${row.padEnd(5)} ${isGood ? 'ok ' : 'NOT'} ${words}\n`)
}
process.stdout.write(`${all.length - missed} of ${all.length}\n`)
if (missed * 15 > all.length) process.exitCode = 1
