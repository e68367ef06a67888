/** Random expressions against the real pgbench: values by debug() in one run with one seed, errors one by one. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, describe, expect, test } from 'vitest'
import { compile } from '../../../src/bench/script/compile.js'
import { parseExpression } from '../../../src/bench/script/expression-parser.js'
import { Variables } from '../../../src/bench/script/variables.js'
import { Prng } from '../../../src/topology/prng.js'
import { findTool, isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'

const directory = mkdtempSync(join(tmpdir(), 'pgshard-expressions-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const pick = <T>(...items: T[]) => fc.constantFrom(...items)

const constants = fc.oneof(
  fc.integer({ min: -9, max: 9 }).map((n) => (n < 0 ? `(${n})` : String(n))),
  pick('0', '1', '2', '3', '7', '63', '64', '1000000', '9223372036854775807'),
  pick('-9223372036854775808', '0.5', '1.5', '2.5', '1e3', '.25', '1e-7', '123456789.125'),
  pick('null', 'true', 'false', 'NULL', 'True'),
  pick(':i', ':d', ':t', ':n', ':text'),
)

const { expression } = fc.letrec<{ expression: string }>((tie) => {
  const inner = tie('expression')
  const binary = fc
    .tuple(
      inner,
      pick(...'+ - * / % = <> != < <= > >= | & # << >> and or AND Or'.split(' ')),
      inner,
    )
    .map(([a, op, b]) => `${a} ${op} ${b}`)
  const unary = fc.tuple(pick('-', '+', '~', 'not '), inner).map(([op, a]) => `${op}${a}`)
  const test = fc
    .tuple(inner, pick('is null', 'is not null', 'isnull', 'notnull', 'is true', 'is not false'))
    .map(([a, op]) => `${a} ${op}`)
  const one = fc
    .tuple(pick('abs', 'double', 'exp', 'int', 'ln', 'sqrt', 'hash', 'hash_fnv1a'), inner)
    .map(([f, a]) => `${f}(${a})`)
  const two = fc
    .tuple(
      pick('mod', 'pow', 'power', 'hash_murmur2', 'permute', 'least', 'greatest'),
      inner,
      inner,
    )
    .map(([f, a, b]) => `${f}(${a}, ${b})`)
  const three = fc
    .tuple(pick('least', 'greatest', 'permute'), inner, inner, inner)
    .map(([f, a, b, c]) => `${f}(${a},${b},${c})`)
  const random = fc
    .tuple(
      pick('random(1, 10)', 'random(-5000, 5000)', 'random(0, 0)', 'random(1, 1000000000000)'),
      pick('random_gaussian(1, 100, 2.5)', 'random_exponential(1, 1000, 3)'),
      pick('random_zipfian(1, 1000, 1.2)', 'random_zipfian(-5, 50, 3.5)'),
      fc.nat(2),
    )
    .map((all) => all[all[3]] as string)
  const when = fc
    .tuple(inner, inner, inner)
    .map(([a, b, c]) => `case when ${a} then ${b} else ${c} end`)
  return {
    expression: fc.oneof(
      { maxDepth: 4, depthSize: 'medium' },
      constants,
      binary,
      binary,
      unary,
      test,
      one,
      two,
      three,
      random,
      when,
      inner.map((a) => `(${a})`),
    ),
  }
})

const texts: Record<string, string> = { t: 'true', n: 'null', text: 'abc', d: '2.75', i: '42' }
const seed = 4711n

/** What we make of a list of expressions, evaluated one after the other by client 0. */
function ours(expressions: readonly string[]) {
  const base = Prng.ofSeed(seed)
  const prng = Prng.ofSeed(base.nextUint64())
  const variables = new Variables()
  for (const [name, text] of Object.entries(texts)) variables.setText(name, text, 'option')
  variables.setValue('default_seed', 77n, 'startup')
  return expressions.map((text) => {
    const lines: string[] = []
    const debug = (line: string) => void lines.push(line)
    try {
      const tree = parseExpression(`debug(${text})`)
      compile(tree)({ prng, debug, variable: (name) => variables.value(name) })
      return { value: lines[0] as string }
    } catch (error) {
      return { error: (error as Error).message }
    }
  })
}

/** What fails may hang on the numbers drawn before it: dropped until nothing fails. */
function withoutErrors(expressions: readonly string[]): readonly string[] {
  const results = ours(expressions)
  const good = expressions.filter((_, i) => results[i]?.error === undefined)
  return good.length === expressions.length ? good : withoutErrors(good)
}

describe.skipIf(isMissing('pgbench'))('expressions', () => {
  const postgres = usePostgres()

  function pgbench(expressions: readonly string[]) {
    const file = join(directory, 'script.sql')
    writeFileSync(file, expressions.map((text) => `\\set v debug(${text})\n`).join(''))
    const variables = Object.entries({ ...texts, default_seed: '77' }).map(
      ([name, text]) => `-D${name}=${text}`,
    )
    const server = postgres()
    const run = spawnSync(
      findTool('pgbench') as string,
      ['-n', '-t', '1', `--random-seed=${seed}`, ...variables, '-f', file, server.url()],
      { encoding: 'utf8' },
    )
    const values = run.stderr.split('\n').flatMap((line) => {
      const found = /^debug\(script=0,command=\d+\): (.*)$/.exec(line)
      return found === null ? [] : [found[1] as string]
    })
    return { values, status: run.status, stderr: run.stderr }
  }

  const all = [...new Set(fc.sample(expression, { numRuns: 1500, seed: 15 }))]
  const results = ours(all)
  const good = all.filter((_, i) => results[i]?.error === undefined)

  test('values are those of pgbench, random ones too', () => {
    expect(good.length).toBeGreaterThan(400)
    for (let from = 0; from < good.length; from += 200) {
      const some = withoutErrors(good.slice(from, from + 200))
      const wanted = pgbench(some)
      const mine = ours(some)
      const table = some.map((text, i) => [text, mine[i]?.value])
      expect(wanted.stderr).not.toContain('aborted')
      expect(table).toEqual(some.map((text, i) => [text, wanted.values[i]]))
    }
  })

  test('what fails here fails there', () => {
    // abs() of a boolean is undefined behaviour in pgbench, an error here.
    const bad = all
      .filter((text, i) => results[i]?.error !== undefined && !text.includes('abs('))
      .slice(0, 60)
    expect(bad.length).toBeGreaterThan(30)
    const differing = bad.flatMap((text) => {
      const wanted = pgbench([text])
      const { error = '' } = ours([text])[0] as { error?: string }
      const isSame =
        wanted.status !== 0 && (error === 'syntax error' || wanted.stderr.includes(error))
      return isSame ? [] : [{ text, error, status: wanted.status, pgbench: wanted.stderr }]
    })
    expect(differing).toEqual([])
  })
})
