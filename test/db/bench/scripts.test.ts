/** The scripts of fixtures/bench give what pgbench 15 gave for them, in three protocols; and what it does at their edges. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type BenchRun, benchRun } from '../../support/bench-run.js'
import { usePostgres } from '../../support/use-postgres.js'

const fixtures = 'fixtures/bench'
const directory = mkdtempSync(join(tmpdir(), 'pgshard-scripts-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const postgres = usePostgres({ version: 15 })
beforeAll(async () => {
  await postgres().query('create table blog(k text, v text)')
})
beforeEach(async () => {
  await postgres().query('truncate blog')
})

async function rows(): Promise<string> {
  const found = await postgres().query('select k, v from blog order by ctid')
  return found.map(({ k, v }) => `${k}=${v}|`).join('')
}

const protocols = ['simple', 'extended', 'prepared'] as const
let files = 0

async function runText(
  text: string,
  flags: Parameters<typeof benchRun>[1] = {},
): Promise<BenchRun> {
  const path = join(directory, `${++files}.sql`)
  writeFileSync(path, text)
  return await benchRun(postgres().url(), { file: [path], transactions: 1, ...flags })
}

interface Recorded {
  exitCode: number
  rows: string
  errors: string[]
}

/** Lines such as "M04-if.sql [simple] rc=0 rows: if=three|if=inner-else| err: …". */
function recorded(): Map<string, Recorded> {
  const lines = readFileSync(join(fixtures, 'pgbench15-results.txt'), 'utf8').trim().split('\n')
  return new Map(
    lines.map((line) => {
      const [, file, protocol, code, found = '', errors = ''] =
        /^(\S+) \[(\w+)\] rc=(\d) rows: (.*?)\s*(?:err: (.*))?$/.exec(line) as string[]
      const messages = [...(errors ?? '').matchAll(/ERROR:\s+(.*?)(?= pgbench:|\s*$)/g)]
      return [
        `${file} ${protocol}`,
        { exitCode: Number(code), rows: found, errors: messages.map((one) => one[1] as string) },
      ]
    }),
  )
}

describe('recorded scripts', () => {
  const wanted = recorded()
  const scripts = readdirSync(fixtures).filter((name) => name.endsWith('.sql'))

  test('all are there', () => {
    expect(scripts.length).toBe(7)
    expect(wanted.size).toBe(21)
  })

  for (const protocol of protocols) {
    test.each(scripts)(`%s, ${protocol}`, async (file) => {
      const expected = wanted.get(`${file} ${protocol}`) as Recorded
      const run = await benchRun(postgres().url(), {
        file: [join(fixtures, file)],
        transactions: 1,
        protocol,
      })
      expect({ exitCode: run.exitCode, rows: await rows() }).toEqual({
        exitCode: expected.exitCode,
        rows: expected.rows,
      })
      for (const message of expected.errors) expect(run.stderr).toContain(message)
    })
  }
})

describe('pipelines', () => {
  const script =
    "\\startpipeline\ninsert into blog values ('p', :a::text);\nselect 1;\ninsert into blog values ('q', '2');\n\\endpipeline\n"

  test.each(['extended', 'prepared'] as const)('%s', async (protocol) => {
    const run = await runText(script, { protocol, define: ['a=7'], transactions: 2 })
    expect(run.exitCode).toBe(0)
    expect(await rows()).toBe('p=7|q=2|p=7|q=2|')
  })

  test('not with the simple protocol', async () => {
    const run = await runText(script, { define: ['a=7'] })
    expect(run.exitCode).toBe(2)
    expect(run.stderr).toContain('cannot use pipeline mode with the simple query protocol')
  })

  test('an open one at the end aborts', async () => {
    const run = await runText('\\startpipeline\nselect 1;\n', { protocol: 'extended' })
    expect(run.stderr).toContain('end of script reached with pipeline open')
    expect(run.exitCode).toBe(2)
  })

  test('an error inside aborts and leaves nothing', async () => {
    const text =
      "\\startpipeline\ninsert into blog values ('x', '1');\nselect 1/0;\n\\endpipeline\n"
    const run = await runText(text, { protocol: 'extended' })
    expect(run.stderr).toContain('division by zero')
    expect(await rows()).toBe('')
  })
})

describe('\\gset and \\aset', () => {
  test.each([
    ['select 1 where false \\gset', 'expected one row, got 0'],
    ['select generate_series(1, 2) as g \\gset', 'expected one row, got 2'],
    ["insert into blog values ('g', '1') \\gset", 'expected one row, got 0'],
    ['select 1 as "a b" \\gset', 'error storing into variable a b'],
  ])('%s', async (text, message) => {
    const run = await runText(text)
    expect(run.exitCode).toBe(2)
    expect(run.stderr).toContain(message)
  })

  test('aset takes the last row of every result', async () => {
    const run = await runText(
      "select generate_series(1, 3) as a \\; select 5 as b where false \\; select 'z' as c \\aset x_\ninsert into blog values ('a', :x_a || :'x_c');",
      { protocol: 'simple' },
    )
    expect(run.stderr).toContain('syntax error')
    const good = await runText(
      "select generate_series(1, 3) as a \\; select 7 as c \\aset x_\ninsert into blog values ('a', (:x_a + :x_c)::text);",
    )
    expect(good.exitCode).toBe(0)
    expect(await rows()).toBe('a=10|')
  })
})

describe('edges', () => {
  test('an open transaction at the end aborts the client', async () => {
    const run = await runText('begin;\nselect 1;\n')
    expect(run.stderr).toContain('end of script reached without completing the last transaction')
    expect([run.exitCode, run.report.aborted_clients]).toEqual([2, 1])
  })

  test.each(protocols)('a COPY from or to the client ends the client, %s', async (protocol) => {
    for (const text of ['copy blog from stdin;\n', 'copy blog to stdout;\n']) {
      const run = await runText(text, { protocol })
      expect([run.exitCode, run.stderr]).toEqual([
        2,
        expect.stringContaining('COPY is not supported in a script, aborting'),
      ])
    }
  })

  test('a division by zero in \\set aborts with pgbench’s words', async () => {
    const run = await runText('\\set a 1 / 0\nselect 1;\n')
    expect(run.stderr).toContain('division by zero')
    expect(run.stderr).toContain(
      'client 0 aborted in command 0 (set) of script 0; evaluation of meta-command failed',
    )
  })

  test('a sleeping client does not hold up the others', async () => {
    const slow = join(directory, 'slow.sql')
    const fast = join(directory, 'fast.sql')
    writeFileSync(slow, '\\if :client_id = 0\n\\sleep 400 ms\n\\endif\nselect 1;\n')
    writeFileSync(fast, 'select 1;\n')
    const run = await benchRun(postgres().url(), { file: [slow], client: 4, transactions: 2 })
    expect(run.report.processed).toBe(8)
    expect(run.report.elapsed_ms).toBeGreaterThanOrEqual(790)
    expect(run.report.latency_ms.p50).toBeLessThan(300)
  })

  test('a backend that dies aborts its client alone', async () => {
    const run = await runText(
      '\\if :client_id = 1\nselect pg_terminate_backend(pg_backend_pid());\n\\else\nselect 1;\n\\endif\n',
      { client: 3, transactions: 5 },
    )
    expect([run.exitCode, run.report.aborted_clients, run.report.processed]).toEqual([2, 1, 10])
    expect(run.stderr).toContain('terminating connection due to administrator command')
    expect(run.stderr).toContain('client 1 script 0 aborted in command 1 query 0: FATAL:')
  })

  test('serialization failures are counted, and retried when asked', async () => {
    await postgres().query('create table if not exists counter(n int)')
    await postgres().query('truncate counter')
    await postgres().query('insert into counter values (0)')
    const text =
      'begin isolation level repeatable read;\nselect n from counter;\nselect pg_sleep(0.002);\nupdate counter set n = n + 1;\ncommit;\n'
    const once = await runText(text, { client: 8, transactions: 10 })
    expect(once.exitCode).toBe(0)
    expect(once.report.failed).toBeGreaterThan(0)
    expect(once.report.processed + once.report.failed).toBe(80)
    const [before] = await postgres().query('select n from counter')
    expect(before?.['n']).toBe(once.report.processed)
    const retried = await runText(text, { client: 4, transactions: 5, 'max-tries': 1000 })
    expect([retried.report.failed, retried.report.processed]).toEqual([0, 20])
    expect(retried.report.retries).toBeGreaterThan(0)
  })

  test('the time limit ends clients that wait for their turn, and lets those finish that sleep in a script', async () => {
    const waiting = await runText('select 1;\n', { time: 1, rate: '0.01' })
    expect([waiting.exitCode, waiting.report.processed]).toEqual([0, 0])
    expect(waiting.report.elapsed_ms).toBeLessThan(20_000)
    const asleep = await runText('\\sleep 1500 ms\nselect 1;\n', { time: 1, client: 2 })
    expect([asleep.exitCode, asleep.report.processed]).toEqual([0, 2])
  })

  test('a rate is kept, and lateness counts as latency', async () => {
    const run = await runText('select 1;\n', { time: 1, transactions: undefined, rate: '100' })
    expect(run.report.processed).toBeGreaterThan(60)
    expect(run.report.processed).toBeLessThan(140)
    expect(run.report.schedule_lag_ms).not.toBeNull()
  })
})
