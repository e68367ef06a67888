/** Load over three nodes: initialised each on its own, shares by chance, weights, a node that is down, pgbench's report. */
import { spawnSync } from 'node:child_process'
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import type { BenchReport } from '../../../src/bench/bench-report.js'
import { initTables } from '../../../src/bench/init/init-tables.js'
import { ownLines, pgbenchLines } from '../../../src/bench/report/report-text.js'
import { readConninfo } from '../../../src/pg/connect.js'
import { benchRun } from '../../support/bench-run.js'
import { freePort } from '../../support/free-port.js'
import { runCli, runCliJson } from '../../support/run-cli.js'
import { findTool, isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'

const postgres = usePostgres({ version: 15, count: 3 })

/** A list of hosts by the numbers of their servers; a number past the servers is a port where nobody listens. */
function conninfo(
  servers: readonly number[],
  more = 'load_balance_hosts=random connect_timeout=5',
) {
  const { user, database, servers: running } = postgres()
  const hosts = servers.map((i) => running[i]?.host ?? '127.0.0.1').join(',')
  const ports = servers.map((i) => running[i]?.port ?? deadPort).join(',')
  return `host=${hosts} port=${ports} user=${user} dbname=${database} ${more}`
}

let deadPort = 0
const said: string[] = []

beforeAll(async () => {
  deadPort = await freePort()
  const reports = await initTables(
    {
      conninfo: readConninfo(conninfo([0, 1, 2, 1])),
      scale: 1,
      fillfactor: 90,
      unlogged: true,
      steps: ['d', 't', 'g', 'v', 'p'],
      partitions: 0,
      partitionMethod: 'range',
      quiet: true,
    },
    { say: (line) => void said.push(line) },
  )
  expect(reports.length).toBe(3)
})

async function counts(table: string): Promise<number[]> {
  const all = await Promise.all(
    [0, 1, 2].map((i) => postgres().query(`select count(*)::int as n from ${table}`, [], i)),
  )
  return all.map(([row]) => row?.['n'] as number)
}

const truncate = async () => {
  for (const i of [0, 1, 2]) await postgres().query('truncate pgbench_history', [], i)
}

describe('init', () => {
  test('L51: every node has all rows, once', async () => {
    expect(await counts('pgbench_accounts')).toEqual([100_000, 100_000, 100_000])
    expect(await counts('pgbench_tellers')).toEqual([10, 10, 10])
    expect(await counts('pgbench_branches')).toEqual([1, 1, 1])
  })

  test('tables are those of pgbench', async () => {
    const [row] = await postgres().query(
      `select relpersistence as p, reloptions as o, (select string_agg(attname || ' ' || format_type(atttypid, atttypmod) || attnotnull, ',' order by attnum)
         from pg_attribute where attrelid = c.oid and attnum > 0) as columns,
         (select length(filler) from pgbench_accounts where aid = 1) as filler
       from pg_class c where relname = 'pgbench_accounts'`,
    )
    expect(row).toEqual({
      p: 'u',
      o: ['fillfactor=90'],
      columns: 'aid integertrue,bid integerfalse,abalance integerfalse,filler character(84)false',
      filler: 0,
    })
  })

  test('L53, L54: five times a node, in order', () => {
    const done = said.filter((line) => line.includes('done in'))
    expect(done.length).toBe(3)
    for (const line of done) {
      expect(line).toMatch(
        /^\S+: done in [\d.]+ s \(drop tables [\d.]+ s, create tables [\d.]+ s, client-side generate [\d.]+ s, vacuum [\d.]+ s, primary keys [\d.]+ s\)\.$/,
      )
    }
  })
})

describe('shares', () => {
  test('L9, L48, L49: three equal entries: every transaction on the node that the report says', async () => {
    await truncate()
    const run = await benchRun(conninfo([0, 1, 2]), { client: 2, connect: true, transactions: 500 })
    expect([run.exitCode, run.report.processed, run.report.failed]).toEqual([0, 1000, 0])
    const history = await counts('pgbench_history')
    expect(history.reduce((sum, n) => sum + n, 0)).toBe(1000)
    expect(run.report.nodes.map((node) => node.transactions)).toEqual(history)
    expect(run.report.nodes.map((node) => node.connections)).toEqual(history)
    expect(run.report.chi_square?.p).toBeGreaterThan(0.001)
    for (const n of history) expect(n).toBeGreaterThan(0)
  })

  test('L40, L60: an entry twice gives about 1 : 2 : 1', async () => {
    await truncate()
    const run = await benchRun(conninfo([0, 1, 2, 1]), {
      client: 2,
      connect: true,
      transactions: 300,
      'select-only': true,
    })
    expect(run.report.nodes.map((node) => node.expected_share)).toEqual([0.25, 0.5, 0.25])
    expect(run.report.chi_square?.p).toBeGreaterThan(0.001)
    expect(run.report.nodes[1]!.share).toBeGreaterThan(0.4)
  })

  test('L26, L61: a node that is down: nothing fails, and weights hold for the rest', async () => {
    const run = await benchRun(conninfo([9, 1, 2, 1]), {
      client: 2,
      connect: true,
      transactions: 200,
      'select-only': true,
    })
    expect([run.exitCode, run.report.processed]).toEqual([0, 400])
    const [down, twice, once] = run.report.nodes
    expect(down).toMatchObject({ connections: 0, expected_share: 0 })
    expect(down!.connect_failures).toBeGreaterThan(50)
    expect(twice!.expected_share).toBeCloseTo(2 / 3)
    expect(once!.expected_share).toBeCloseTo(1 / 3)
    expect(run.report.chi_square?.degreesOfFreedom).toBe(1)
    expect(run.report.chi_square?.p).toBeGreaterThan(0.001)
  })

  test('L8: disable: the first host takes all', async () => {
    const run = await benchRun(conninfo([0, 1, 2], ''), {
      client: 2,
      connect: true,
      transactions: 20,
      'select-only': true,
    })
    expect(run.report.nodes.map((node) => node.connections)).toEqual([40, 0, 0])
    expect(run.report.chi_square).toBeNull()
  })

  test('L25, L41: without -C each client stays on its node', async () => {
    const run = await benchRun(conninfo([0, 1, 2]), {
      client: 6,
      transactions: 10,
      'select-only': true,
    })
    const { nodes } = run.report
    expect(nodes.reduce((sum, node) => sum + node.connections, 0)).toBe(6)
    for (const node of nodes) expect(node.transactions).toBe(node.connections * 10)
  })

  test('the same seed reaches the same nodes', async () => {
    const flags = { client: 1, connect: true, transactions: 60, 'select-only': true, seed: '99' }
    const [first, second] = [
      await benchRun(conninfo([0, 1, 2]), flags),
      await benchRun(conninfo([0, 1, 2]), flags),
    ]
    const shares = (run: typeof first) => run.report.nodes.map((node) => node.connections)
    expect(shares(first)).toEqual(shares(second))
  })

  test('all down: one block per attempt', async () => {
    await expect(benchRun(conninfo([9, 9], 'connect_timeout=5'))).rejects.toThrow(
      `connection to server at "127.0.0.1", port ${deadPort} failed: Connection refused`,
    )
  })
})

describe('warnings', () => {
  test('L29: random without a timeout is warned of, with one it is not', async () => {
    const flags = { transactions: 1, 'select-only': true }
    const without = await benchRun(conninfo([0, 1], 'load_balance_hosts=random'), flags)
    const withOne = await benchRun(conninfo([0, 1]), flags)
    expect(without.stderr).toContain('load_balance_hosts=random without connect_timeout')
    expect(withOne.stderr).toBe('pgshard: setting random seed to 1')
  })
})

describe('thresholds', () => {
  test('one that fails is exit code 3', async () => {
    const run = await benchRun(conninfo([0, 1]), {
      transactions: 5,
      'select-only': true,
      threshold: ['p99<10s', 'errors==0', 'tps>1000000000', 'sched_lag_p99<1ms'],
    })
    expect(run.exitCode).toBe(3)
    expect(run.thresholds.map(({ ok }) => ok)).toEqual([true, true, false, false])
  })
})

describe.skipIf(isMissing('pgbench'))('the report', () => {
  /** Numbers of a report blanked: its shape, with as many decimals. */
  const shape = (lines: readonly string[]) =>
    lines.map((line) =>
      line.replace(/\d+(?:\.(\d+))?/g, (_, decimals) =>
        decimals === undefined ? '0' : `0.${'0'.repeat(decimals.length)}`,
      ),
    )

  test.each<[string, string[], Parameters<typeof benchRun>[1]]>([
    ['plain', ['-c', '2', '-t', '10'], { client: 2, transactions: 10 }],
    ['-C', ['-C', '-t', '3'], { connect: true, transactions: 3 }],
    ['-S -T', ['-S', '-T', '1'], { 'select-only': true, time: 1 }],
    [
      '-r',
      ['-r', '-N', '-t', '2'],
      { 'report-per-command': true, 'skip-some-updates': true, transactions: 2 },
    ],
    ['-R', ['-R', '100', '-t', '5'], { rate: '100', transactions: 5 }],
    [
      '--max-tries',
      ['--max-tries=3', '-r', '-t', '2'],
      { 'max-tries': 3, 'report-per-command': true, transactions: 2 },
    ],
    [
      'several scripts',
      ['-b', 'tpcb@2', '-b', 'select@1', '-r', '-t', '20', '-M', 'prepared'],
      {
        builtin: ['tpcb@2', 'select@1'],
        'report-per-command': true,
        transactions: 20,
        protocol: 'prepared',
      },
    ],
  ])('L55, L58: has the lines of pgbench: %s', async (_, argv, flags) => {
    const theirs = spawnSync(findTool('pgbench') as string, ['-n', ...argv, postgres().url()], {
      encoding: 'utf8',
    })
    expect(theirs.status).toBe(0)
    const run = await benchRun(postgres().url(), flags)
    const mine = pgbenchLines(run.report, { isMeasured: flags?.rate !== undefined })
    expect(shape(mine)).toEqual(shape(theirs.stdout.trim().split('\n').slice(1)))
  })

  test('L57: tps is clients over latency', async () => {
    const { report } = await benchRun(postgres().url(), { client: 2, transactions: 50 })
    expect(report.tps).toBeCloseTo((2 * 1000) / report.latency_from_time_ms, 6)
  })

  test('L38: a row per node and the chi-square follow', async () => {
    const run = await benchRun(conninfo([0, 1, 2]), { connect: true, transactions: 5 })
    const text = ownLines(run.report).join('\n')
    expect(text).toMatch(/node +weight +expected +connections +transactions +share/)
    expect(text).toMatch(
      /chi-square of connections: [\d.]+, 2 degrees of freedom, p = [\d.]+ \(too few/,
    )
  })
})

describe('seconds, sweeps and comparisons', () => {
  test('each second of a run adds up to its transactions, per node and over all', async () => {
    const report = await runCliJson<BenchReport>([
      ...['bench', '-n', '-S', '-c', '6', '-j', '2', '-T', '2', conninfo([0, 1, 2])],
    ])
    const { seconds } = report
    const transactions = (tps: readonly number[]) =>
      tps.reduce((sum, value, i) => sum + value * Math.min(1, report.elapsed_ms / 1000 - i), 0)
    expect(transactions(seconds.tps)).toBeCloseTo(report.processed, -1)
    for (const { node, transactions: count } of report.nodes) {
      expect(transactions(seconds.nodes[node]?.tps ?? [])).toBeCloseTo(count, -1)
    }
    expect(Math.max(...seconds.max_ms)).toBeGreaterThanOrEqual(Math.max(...seconds.avg_ms))
  })

  test('--sweep runs once for each number of clients; --junit and compare read what was written', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'sweep-'))
    const target = conninfo([0, 1, 2])
    const sweep = await runCli([
      ...['bench', '-n', '-S', '-t', '5', '--sweep', '1,3', '--threshold', 'tps>1e-6'],
      ...['--threshold', 'p99<1us', target],
    ])
    expect(sweep.stdout.split('\n')[0]).toMatch(/^clients\s+tps\s+avg/)
    expect(sweep.stdout).toMatch(/\n1\s+[\d.]+ [^\n]*\n3\s+[\d.]+/)
    expect(sweep.stdout).toContain('threshold p99<1us: FAILED with 3 clients')
    expect(sweep.code).toBe(3)
    const [json, junit] = [join(folder, 'run.json'), join(folder, 'run.xml')]
    const run = await runCli([
      ...['bench', '-n', '-S', '-t', '5', '--json-file', json, '--junit', junit, target],
    ])
    expect(run.code).toBe(0)
    expect(readFileSync(junit, 'utf8')).toContain('<testsuite name="pgshard bench" tests="1"')
    const same = await runCli(['bench', 'compare', json, json, '--json'])
    expect(JSON.parse(same.stdout)).toMatchObject({ is_different: false, differing_settings: [] })
    expect(same.code).toBe(0)
    const bad = await runCli(['bench', '--sweep', '4,x', target])
    expect(bad.stderr).toContain('invalid number of clients')
  })
})
