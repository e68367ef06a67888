/** `\shell` and `\setshell`: refused unless allowed, and then what pgbench does with them. */
import { beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { benchRun } from '../../support/bench-run.js'
import { scriptFile } from '../../support/script-file.js'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { runProgram } from '../drivers/driver-rig.js'

const postgres = usePostgres({ version: 15 })
beforeAll(async () => {
  await postgres().query('create table got(v text)')
})
beforeEach(async () => {
  await postgres().query('truncate got')
})

const rows = async () =>
  (await postgres().query('select v from got order by v')).map(({ v }) => v as string)

test('refused before anything is done, unless allowed', async () => {
  const file = [scriptFile("insert into got values ('x');\n\\setshell a echo 1\n")]
  await expect(benchRun(postgres().url(), { file, transactions: 1 })).rejects.toMatchObject({
    code: 'BENCH_SHELL_REFUSED',
  })
  expect(await rows()).toEqual([])
})

const scripts: [string, string][] = [
  ['a number', '\\setshell a echo 42\ninsert into got values (:a::text);\n'],
  [
    'variables and colons',
    '\\set n 7\n\\setshell a test ::n = :n || echo :n\ninsert into got values (:a::text);\n',
  ],
  ['the first line', '\\setshell a printf "5\\n6\\n"\ninsert into got values (:a::text);\n'],
  ['blanks around', '\\setshell a echo "  -3  "\ninsert into got values (:a::text);\n'],
  ['a command that succeeds', "\\shell true\ninsert into got values ('after');\n"],
  ['a command that fails', "\\shell exit 3\ninsert into got values ('after');\n"],
  ['words that are no number', "\\setshell a echo two\ninsert into got values ('after');\n"],
  ['no output', "\\setshell a true\ninsert into got values ('after');\n"],
  [
    'a failing command with a number',
    '\\setshell a echo 9; exit 2\ninsert into got values (:a::text);\n',
  ],
  ['an unknown variable', "\\setshell a echo :nothing\ninsert into got values ('after');\n"],
  ['too long', `\\shell echo ${'x'.repeat(260)}\ninsert into got values ('after');\n`],
  ['nothing to run', '\\shell\n'],
  ['no command to set from', '\\setshell a\n'],
]

describe.skipIf(isMissing('pgbench'))('allowed: as pgbench', () => {
  test.each(scripts)('%s', async (_, text) => {
    const file = scriptFile(text)
    const theirs = await runProgram('pgbench', ['-n', '-t', '1', '-f', file, postgres().url()])
    const wanted = await rows()
    await postgres().query('truncate got')
    let mine: { code: number; stderr: string }
    try {
      const run = await benchRun(postgres().url(), {
        file: [file],
        transactions: 1,
        'allow-shell': true,
      })
      mine = { code: run.exitCode, stderr: run.stderr }
    } catch (error) {
      mine = { code: 1, stderr: (error as Error).message }
    }
    expect(await rows()).toEqual(wanted)
    expect(mine.code).toBe(theirs.code)
    // the words of a failing command itself go to the terminal
    const said = /error: ((?:\w+): .*|client .*)/.exec(theirs.stderr)?.[1]
    if (said !== undefined) expect(mine.stderr).toContain(said)
  })
})
