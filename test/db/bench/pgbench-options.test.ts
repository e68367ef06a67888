/** Options about limits, failures and logs: the same lines and the same log files, number by number, as pgbench 15 writes them. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { runCli } from '../../support/run-cli.js'
import { findTool, isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'

const postgres = usePostgres({ version: 15 })
const pgbench = findTool('pgbench')
const scripts = mkdtempSync(join(tmpdir(), 'bench-scripts-'))

beforeAll(async () => {
  writeFileSync(join(scripts, 'quick.sql'), 'select 1;\n')
  writeFileSync(join(scripts, 'slow.sql'), 'select pg_sleep(0.03);\n')
  writeFileSync(
    join(scripts, 'clash.sql'),
    'begin isolation level serializable;\nselect n from clash;\nselect pg_sleep(0.01);\nupdate clash set n = n + 1;\ncommit;\n',
  )
  const raise = "raise exception using errcode = '40001', message = 'try again'"
  writeFileSync(
    join(scripts, 'failing.sql'),
    `do $$ begin perform pg_sleep(0.02); ${raise}; end $$;\n`,
  )
  writeFileSync(join(scripts, 'sleepy.sql'), 'select pg_sleep(0.02);\n')
  writeFileSync(join(scripts, 'long.sql'), '\\sleep 1500 ms\ninsert into done values (1);\n')
  writeFileSync(
    join(scripts, 'all.sql'),
    '\\set a 1 + 1\nselect :a;\n\\sleep 1 ms\n\\if :a > 5\nselect 2;\n\\endif\nselect 1 as b \\gset\n',
  )
  await postgres().query('create table done (n int)')
  await postgres().query('create table clash (n int)')
  await postgres().query('insert into clash values (0)')
})

interface Ran {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
  /** Lines of each log file, by the order of threads. */
  readonly logs: string[][]
}

function logsIn(folder: string): string[][] {
  const names = readdirSync(folder).sort((a, b) => a.length - b.length || (a < b ? -1 : 1))
  return names.map((name) => readFileSync(join(folder, name), 'utf8').trim().split('\n'))
}

/** With both programs in folders of their own. */
async function both(args: readonly string[]): Promise<{ ours: Ran; theirs: Ran }> {
  const { user, database, servers } = postgres()
  const target = `host=${servers[0]!.host} port=${servers[0]!.port} user=${user} dbname=${database}`
  const all = ['-n', ...args, target]
  const [own, other] = [0, 1].map(() => mkdtempSync(join(tmpdir(), 'bench-log-'))) as [
    string,
    string,
  ]
  const ours = await runCli(['bench', ...all], { cwd: own })
  const theirs = spawnSync(pgbench as string, all, { cwd: other, encoding: 'utf8' })
  return {
    ours: { ...ours, logs: logsIn(own) },
    theirs: {
      code: theirs.status,
      stdout: theirs.stdout,
      stderr: theirs.stderr,
      logs: logsIn(other),
    },
  }
}

/** Every number becomes #, so that only the form is left. */
const formOf = (line: string): string => line.replace(/\d+(?:\.\d+)?/g, '#')

/** The lines that pgbench prints, without its version before them and ours behind them. */
function reportOf(text: string): string[] {
  const lines = text.split('\n')
  const from = lines.findIndex((line) => line.startsWith('transaction type'))
  const to = lines.findIndex((line, i) => i > from && line === '')
  return lines.slice(from, to < 0 ? undefined : to).map(formOf)
}

const file = (name: string) => join(scripts, `${name}.sql`)

describe.skipIf(isMissing('pgbench'))('options of pgbench', () => {
  test.each<[string, string[]]>([
    ['a latency limit', ['-f', file('quick'), '-f', file('slow'), '-t', '40', '-L', '10']],
    [
      'a latency limit with a rate',
      ['-f', file('quick'), '-f', file('slow'), '-c', '2', '-T', '1', '-R', '200', '-L', '10'],
    ],
    [
      'failures by kind',
      ['-f', file('clash'), '-f', file('quick'), '-c', '4', '-t', '6', '--failures-detailed'],
    ],
    [
      'failures by kind with retries',
      [
        '-f',
        file('clash'),
        '-f',
        file('quick'),
        '-c',
        '4',
        '-t',
        '6',
        '--failures-detailed',
        '--max-tries',
        '3',
      ],
    ],
  ])('%s: the same lines', async (_, args) => {
    const { ours, theirs } = await both(args)
    expect(ours.code).toBe(theirs.code)
    expect(reportOf(ours.stdout)).toEqual(reportOf(theirs.stdout))
  })

  test('counts what the limit skips and what is late', async () => {
    const { ours } = await both(['-f', file('slow'), '-c', '1', '-T', '1', '-R', '100', '-L', '20'])
    const skipped = Number(/skipped: (\d+)/.exec(ours.stdout)?.[1])
    const [, late, done] = /latency limit: (\d+)\/(\d+)/.exec(ours.stdout) ?? []
    // every 10 ms one that takes 30 ms: two of three can never begin in time
    expect(skipped).toBeGreaterThan(30)
    expect(late).toBe(done)
  })

  test.each<[string, string[]]>([
    ['each transaction', ['-f', file('quick'), '-c', '3', '-j', '2', '-t', '4', '-l']],
    [
      'lag and retries',
      ['-f', file('quick'), '-c', '2', '-t', '5', '-R', '500', '-l', '--max-tries', '2'],
    ],
    ['a prefix', ['-f', file('quick'), '-t', '2', '-l', '--log-prefix', 'mine']],
  ])('log: %s', async (_, args) => {
    const { ours, theirs } = await both(args)
    expect(ours.logs.map((lines) => lines.map(formOf))).toEqual(
      theirs.logs.map((lines) => lines.map(formOf)),
    )
    // client, its transactions from 1 on, and the script
    const heads = (ran: Ran) =>
      ran.logs.map((lines) =>
        lines
          .map((line) => line.split(' '))
          .map(([client, number, , script]) => `${client} ${number} ${script}`)
          .sort(),
      )
    expect(heads(ours)).toEqual(heads(theirs))
    const [, , , , seconds, micros] = ours.logs[0]![0]!.split(' ').map(Number) as number[]
    expect(Math.abs(Date.now() / 1000 - (seconds as number))).toBeLessThan(120)
    expect(micros).toBeLessThan(1_000_000)
  })

  test('log: what was skipped and what failed', async () => {
    const skipping = await both(['-f', file('slow'), '-T', '1', '-R', '100', '-L', '20', '-l'])
    for (const { logs } of [skipping.ours, skipping.theirs])
      expect(logs[0]?.find((line) => line.includes('skipped'))).toMatch(
        /^0 \d+ skipped 0 \d+ \d+ \d+$/,
      )
    const failing = await both([
      '-f',
      file('clash'),
      '-c',
      '4',
      '-t',
      '6',
      '-l',
      '--failures-detailed',
    ])
    for (const { logs } of [failing.ours, failing.theirs])
      expect(logs[0]?.find((line) => line.includes('serialization'))).toMatch(
        /^\d \d serialization 0 \d+ \d+$/,
      )
  })

  // all of these fail by themselves, so that every number is the same
  test.each<[string, string[]]>([
    ['none is late that failed', ['-t', '6', '-L', '15']],
    ['nor with a rate', ['-t', '6', '-R', '1000', '-L', '5000']],
    ['with retries', ['-t', '6', '--max-tries', '2', '-L', '5000', '-r']],
  ])('failures: %s', async (_, args) => {
    const scripts = ['-f', file('failing'), '-f', file('sleepy'), '--random-seed', '3']
    const { ours, theirs } = await both([...scripts, ...args])
    const counts = (text: string) => text.split('\n').filter((line) => /^number of/.test(line))
    expect(counts(ours.stdout)).toEqual(counts(theirs.stdout))
  })

  test('log: a failure has no lag, and no column of its own in intervals', async () => {
    const lagging = await both(['-f', file('failing'), '-t', '3', '-R', '1000', '-l'])
    const lags = (ran: Ran) => ran.logs[0]!.map((line) => line.split(' ').at(-1))
    expect(lags(lagging.ours)).toEqual(['0', '0', '0'])
    expect(lags(lagging.theirs)).toEqual(['0', '0', '0'])
    const whole = await both(['-f', file('failing'), '-T', '2', '-l', '--aggregate-interval', '1'])
    for (const { logs } of [whole.ours, whole.theirs])
      for (const line of logs[0]!) expect(line).toMatch(/^\d+( 0){14}$/)
  })

  test('verbose errors tell how much of the limit was used', async () => {
    const { ours, theirs } = await both([
      ...['-f', file('failing'), '-t', '1', '--max-tries', '2', '-L', '5000', '--verbose-errors'],
    ])
    const lines = ({ stderr }: Ran) =>
      stderr.split('\n').flatMap((line) => /client 0 (?:repeats|ends) .*/.exec(line) ?? [])
    expect(lines(ours)).toHaveLength(2)
    expect(lines(ours).map(formOf)).toEqual(lines(theirs).map(formOf))
  })

  test('a transaction that sleeps when the time is over is finished', async () => {
    const { ours, theirs } = await both(['-f', file('long'), '-T', '1'])
    for (const { stdout } of [ours, theirs]) expect(stdout).toContain('actually processed: 1\n')
    expect(await postgres().query('select * from done')).toHaveLength(2)
  })

  test.each(['simple', 'extended', 'prepared'])('--debug tells the same, %s', async (protocol) => {
    const { ours, theirs } = await both(['--debug', '-f', file('all'), '-t', '2', '-M', protocol])
    const told = ({ stderr }: Ran) =>
      stderr
        .split('\n')
        .filter((line) => /: (client 0|pghost)/.test(line))
        .map((line) => line.replace(/^pg\w+: /, ''))
        // pgbench says so as often as it looks
        .filter((line, i, lines) => line !== 'client 0 receiving' || lines[i - 1] !== line)
    expect(told(ours).length).toBeGreaterThan(10)
    expect(told(ours)).toEqual(told(theirs))
  })

  test('log: whole intervals, which add up to no more than the run', async () => {
    const { ours, theirs } = await both([
      '-f',
      file('quick'),
      '-T',
      '3',
      '-l',
      '--aggregate-interval',
      '1',
    ])
    for (const { logs, stdout } of [ours, theirs]) {
      const rows = logs[0]!.map((line) => line.split(' ').map(Number))
      expect(rows.map((row) => row.length)).toEqual(rows.map(() => 15))
      expect(rows.length).toBeGreaterThanOrEqual(2)
      const counted = rows.reduce((sum, row) => sum + (row[1] as number), 0)
      const processed = Number(/actually processed: (\d+)/.exec(stdout)?.[1])
      expect(counted).toBeGreaterThan(processed / 3)
      expect(counted).toBeLessThanOrEqual(processed)
      for (const [, count, sum, squares, min, max] of rows as number[][]) {
        const mean = (sum as number) / (count as number)
        expect(mean).toBeGreaterThanOrEqual(min as number)
        expect(mean).toBeLessThanOrEqual(max as number)
        expect(squares as number).toBeGreaterThanOrEqual(mean * mean)
      }
    }
  })

  test('log: each run of a sweep has its own', async () => {
    const cwd = mkdtempSync(join(tmpdir(), 'bench-log-'))
    const { user, servers } = postgres()
    const target = `host=${servers[0]!.host} port=${servers[0]!.port} user=${user} dbname=${postgres().database}`
    const ran = await runCli(
      ['bench', '-n', '-f', file('quick'), '-t', '2', '-l', '--sweep', '1,3,1', target],
      { cwd },
    )
    expect(ran.code).toBe(0)
    expect(logsIn(cwd).map((lines) => lines.length)).toEqual([2, 6, 2])
    expect(readdirSync(cwd).sort()[1]).toMatch(/^pgbench_log_2\.\d+$/)
  })

  test('log: a part of the transactions', async () => {
    const { ours } = await both(['-f', file('quick'), '-t', '2000', '-l', '--sampling-rate', '0.2'])
    expect(ours.logs[0]!.length).toBeGreaterThan(300)
    expect(ours.logs[0]!.length).toBeLessThan(500)
  })

  test.each<[string[], RegExp]>([
    [['--log-prefix', 'x'], /--log-prefix is allowed only when logging/],
    [['-l', '--sampling-rate', '2'], /invalid sampling rate/],
    [
      ['-l', '--sampling-rate', '0.1', '--aggregate-interval', '1'],
      /cannot be used at the same time/,
    ],
    [['-l', '-T', '3', '--aggregate-interval', '2'], /must be a multiple of aggregation interval/],
    [['-L', '0'], /invalid latency limit/],
    [['--max-tries', '0'], /can only be used with/],
    [['--progress-timestamp'], /allowed only under --progress/],
  ])('%j is refused, as pgbench does', async (args, message) => {
    const { ours, theirs } = await both(['-f', file('quick'), ...args])
    expect(ours.stderr).toMatch(message)
    expect([ours.code, theirs.code]).toEqual([1, 1])
  })

  test('progress with the time of day', async () => {
    const { ours, theirs } = await both([
      '-f',
      file('quick'),
      '-T',
      '2',
      '-P',
      '1',
      '--progress-timestamp',
    ])
    for (const { stderr } of [ours, theirs]) {
      const seconds = Number(/progress: (\d+\.\d{3}) s, /.exec(stderr)?.[1])
      expect(Math.abs(Date.now() / 1000 - seconds)).toBeLessThan(60)
    }
  })
})
