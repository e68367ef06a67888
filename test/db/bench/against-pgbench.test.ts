/** Scripts at their edges through bench and through the real pgbench, in three protocols: same exit code, same words, same counts, same rows. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { toEngineError } from '../../../src/errors/engine-error.js'
import { benchLines } from '../../support/bench-run.js'
import { bySize } from '../../support/test-size.js'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { runProgram } from '../drivers/driver-rig.js'
import { type PgbenchCase, pgbenchCases } from './pgbench-cases.js'

const directory = mkdtempSync(join(tmpdir(), 'pgshard-against-pgbench-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

/** Options of another name. */
const own: Readonly<Record<string, string>> = { seed: 'random-seed' }

/** Words in which the two differ on purpose. */
function sameWords(text: string): string {
  return text
    .replace(/^(pgbench|pgshard): (error: )?/gm, '')
    .replace(/^LINE \d+:.*\n *\^\n?/gm, '') // the place in the statement, which bench leaves to its reader
    .replace(/(in command "[^"]*")\n[\s\S]*/, '$1') // the place in the script
    .replace(/syntax error \(at or near .*?\) in/, 'syntax error in')
    .replace(/bigint constant overflow \(\d+\)/, 'syntax error')
    .replace(/COPY is not supported in (pgbench|a script)/, 'COPY is not supported')
    .replace(/:\d+: \\gset must follow/, ': \\gset must follow')
    .replace(/^malformed variable "\w+" value: ""\n/m, '') // of which pgbench says nothing
    .trimEnd()
}

/** Without figures; up to what pgbench does not print. */
const sameReport = (text: string): string =>
  text
    .split(/\n\n(?:latency percentiles|node )/)[0]!
    .replace(/^pg.*\n/, '')
    .replaceAll('NaN%', '0.000%')
    .replace(/ *\d+\.\d{3,6}/g, ' N')
    .trim()

describe.skipIf(isMissing('pgbench'))('bench and pgbench', () => {
  const postgres = usePostgres({ version: 15 })
  beforeAll(async () => {
    await postgres().query('create table blog(k text, v text)')
  })

  async function rows(): Promise<string[]> {
    const found = await postgres().query('select k, v from blog order by ctid')
    await postgres().query('truncate blog')
    return found.map(({ k, v }) => `${k}=${v}`)
  }

  async function theirs(file: string, { flags = {} }: PgbenchCase, protocol: string) {
    const options = Object.entries({ transactions: 1, protocol, ...flags }).flatMap(
      ([name, value]) =>
        [value].flat().map((one) => `--${own[name] ?? name}${one === true ? '' : `=${one}`}`),
    )
    const done = await runProgram('pgbench', ['-n', ...options, '-f', file, postgres().url()], {
      env: { LC_ALL: 'C' },
    })
    return {
      code: done.code,
      words: sameWords(done.stderr),
      report: sameReport(done.stdout),
      rows: await rows(),
    }
  }

  async function ours(file: string, { flags = {} }: PgbenchCase, protocol: string) {
    try {
      const { exitCode, stderr, lines } = await benchLines(postgres().url(), {
        seed: undefined,
        file: [file],
        transactions: 1,
        protocol,
        ...flags,
      })
      const report = sameReport(lines.join('\n'))
      return { code: exitCode, words: sameWords(stderr), report, rows: await rows() }
    } catch (error) {
      const words = sameWords(toEngineError(error).message)
      return { code: 1, words, report: '', rows: await rows() }
    }
  }

  const protocols = ['simple', 'extended', 'prepared'] as const
  // quick: each case with one of the three
  for (const [i, protocol] of protocols.entries())
    test.each(pgbenchCases.filter((_, of) => bySize(of % protocols.length === i, true)))(
      `$name, ${protocol}`,
      async (one) => {
        const file = join(directory, 'script.sql')
        writeFileSync(file, one.script)
        expect(await ours(file, one, protocol)).toEqual(await theirs(file, one, protocol))
      },
    )
})
