/**
 * Says of each row of fixtures/requirements.tsv whether a test names it (`test('D84, D85: …')`), a line of
 * docs/limits.md ends in it (`… (D25)`), or nothing does. Skipped tests and tests that check nothing do not count.
 *   --section X   rows of a letter (D), of numbers (D1-D58,B), or of sections whose title holds X; without it all but
 *                 the O rows, which are choices
 *   --json        one object instead of text
 *   --strict      exit 1 when a row is missing, or a title or a limit names a row that is not there
 *   --root DIR    another tree than this one
 */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readTests, rowsOf } from './read-tests.mjs'

const { values: flags } = parseArgs({
  options: {
    section: { type: 'string' },
    json: { type: 'boolean', default: false },
    strict: { type: 'boolean', default: false },
    root: { type: 'string', default: join(dirname(fileURLToPath(import.meta.url)), '..') },
  },
})

const LIMIT = /\((?:[^()]*; )?([LDBXJO]\d+(?:\s*[,–-]\s*[LDBXJO]\d+)*)\)[.;]?\s*\|?\s*$/

function readRows() {
  const [, ...lines] = readFileSync(join(flags.root, 'fixtures/requirements.tsv'), 'utf8')
    .trimEnd()
    .split('\n')
  return lines.map((line) => {
    const [id, section, requirement] = line.split('\t')
    return { id, section, requirement }
  })
}

/** Row → the lines of docs/limits.md that end in it. */
function readLimits() {
  const limits = new Map()
  for (const line of readFileSync(join(flags.root, 'docs/limits.md'), 'utf8').split('\n')) {
    const match = LIMIT.exec(line)
    if (!match) continue
    for (const id of rowsOf(match[1])) limits.set(id, [...(limits.get(id) ?? []), line.trim()])
  }
  return limits
}

/** The rows that were asked for. */
function isChosen({ id, section }) {
  if (flags.section === undefined) return id[0] !== 'O'
  return flags.section.split(',').some((part) => {
    const range = /^([A-Z])(\d+)?(?:-[A-Z]?(\d+))?$/.exec(part.trim())
    if (!range) return section.toLowerCase().includes(part.trim().toLowerCase())
    const [, letter, from, to = from] = range
    const number = Number(id.slice(1))
    return (
      id[0] === letter && (from === undefined || (number >= Number(from) && number <= Number(to)))
    )
  })
}

function judge() {
  const tests = readTests(flags.root)
  const limits = readLimits()
  const all = readRows()
  const rows = all.filter(isChosen).map((row) => {
    const naming = tests.filter((test) => test.rows.includes(row.id))
    const proofs = naming.filter((test) => test.checks && !test.skipped)
    const lines = limits.get(row.id) ?? []
    const state = proofs.length > 0 ? 'covered' : lines.length > 0 ? 'refused' : 'missing'
    const name = ({ file, title }) => `${file}: ${title}`
    return {
      ...row,
      state,
      tests: proofs.map(name),
      conditional: proofs.length > 0 && proofs.every(({ conditional }) => conditional),
      idle: naming.filter((test) => !proofs.includes(test)).map(name),
      limits: lines,
    }
  })
  const known = new Set(all.map(({ id }) => id))
  const unknown = [
    ...tests.flatMap((test) =>
      test.rows.map((id) => ({ id, where: `${test.file}: ${test.title}` })),
    ),
    ...[...limits.keys()].map((id) => ({ id, where: 'docs/limits.md' })),
  ].filter(({ id }) => !known.has(id))
  return { rows, unknown }
}

const count = (rows, state) => rows.filter((row) => row.state === state).length
const figures = (rows) =>
  ['covered', 'refused', 'missing']
    .map((state) => `${String(count(rows, state)).padStart(4)} ${state}`)
    .join(' ')
const shorten = (text) => (text.length > 110 ? `${text.slice(0, 107)}...` : text)

function print({ rows, unknown }) {
  const lines = []
  for (const letter of new Set(rows.map(({ id }) => id[0]))) {
    const own = rows.filter(({ id }) => id[0] === letter)
    lines.push('', `${letter.padEnd(44)}${figures(own)}`)
    for (const section of new Set(own.map((row) => row.section))) {
      const here = own.filter((row) => row.section === section)
      lines.push(`  ${section.slice(0, 40).padEnd(42)}${figures(here)}`)
      for (const row of here.filter(({ state }) => state === 'missing')) {
        lines.push(`      ${row.id.padEnd(5)} ${shorten(row.requirement)}`)
        for (const test of row.idle) lines.push(`            does not count: ${test}`)
      }
    }
  }
  for (const { id, where } of unknown) lines.push(`no such row: ${id} in ${where}`)
  lines.push('', `${'all'.padEnd(44)}${figures(rows)}`)
  const conditional = rows.filter((row) => row.conditional).map(({ id }) => id)
  if (conditional.length > 0)
    lines.push(`covered only where a program or a version is there: ${conditional.join(', ')}`)
  process.stdout.write(`${lines.join('\n').trimStart()}\n`)
}

const verdict = judge()
if (flags.json) {
  const counts = Object.fromEntries(
    ['covered', 'refused', 'missing'].map((state) => [state, count(verdict.rows, state)]),
  )
  process.stdout.write(`${JSON.stringify({ ...counts, ...verdict }, null, 2)}\n`)
} else print(verdict)
if (flags.strict && (count(verdict.rows, 'missing') > 0 || verdict.unknown.length > 0))
  process.exitCode = 1
