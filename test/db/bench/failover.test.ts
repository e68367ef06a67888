/** A node is killed and started again while bench runs over three: the run goes on, and the report says when the node was gone. */
import { expect, test } from 'vitest'
import type { RunFlags } from '../../../src/bench/bench-command.js'
import { startCluster } from '../../../src/cluster/cluster.js'
import { type BenchRun, benchRun } from '../../support/bench-run.js'
import { scriptFile } from '../../support/script-file.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const postgres = usePostgres({ version: 15, count: 3, own: true })
const VICTIM = 1
/** The bound on how far a gap may be from the truth. */
const TOLERANCE_MS = 100

function conninfo(): string {
  const { user, database, servers } = postgres()
  const list = (of: 'host' | 'port') => servers.map((server) => server[of]).join(',')
  return `host=${list('host')} port=${list('port')} user=${user} dbname=${database} load_balance_hosts=random connect_timeout=5`
}

async function times(server = VICTIM): Promise<number[]> {
  const rows = await postgres().query(
    'select (extract(epoch from at) * 1000)::float8 as ms from seen order by at',
    [],
    server,
  )
  return rows.map((row) => row['ms'] as number)
}

async function startAgain(): Promise<void> {
  const { directory } = postgres()
  await startCluster({ directory, shards: 3, replicas: 0, postgresVersion: 15 })
}

/** Runs until the victim was killed, started again, and has answered. Gives the run and the moment of the kill. */
async function runOverDeath(
  flags: Partial<RunFlags>,
  needsReturn = true,
): Promise<{ run: BenchRun; killedMs: number; backMs: number }> {
  for (const i of [0, 1, 2]) {
    await postgres().query('drop table if exists seen', [], i)
    await postgres().query('create table seen(at timestamptz not null)', [], i)
  }
  const stop = new AbortController()
  const running = benchRun(
    conninfo(),
    {
      file: [scriptFile('insert into seen values (clock_timestamp());\n')],
      client: 8,
      time: 120,
      transactions: undefined,
      reconnect: 60,
      ...flags,
    },
    stop.signal,
  )
  running.catch(() => undefined)
  try {
    await waitFor(async () => (await times()).length > 20)
    const pid = Number(
      (await postgres().query("select pg_read_file('postmaster.pid') as pid", [], VICTIM))[0]?.[
        'pid'
      ]
        ?.toString()
        .split('\n')[0],
    )
    const killedMs = Date.now()
    process.kill(pid, 'SIGKILL')
    await waitFor(async () => (await times(0)).filter((at) => at > killedMs + 300).length > 20)
    await startAgain()
    const backMs = Date.now()
    if (needsReturn)
      await waitFor(async () => (await times()).filter((at) => at > backMs).length > 20, {
        deadlineMs: 30_000,
      })
    stop.abort()
    return { run: await running, killedMs, backMs }
  } finally {
    stop.abort()
    await startAgain()
  }
}

test('a killed node: the run goes on, and its gap is the truth to 100 ms', async () => {
  const { run, killedMs } = await runOverDeath({ connect: true, threshold: ['gap_ms<100'] })
  const { report, thresholds } = run
  expect(report.aborted_clients).toBe(0)
  const node = report.nodes[VICTIM]!
  const all = await times()
  // a backend may finish what it was at; the server is started again later than this
  const before = all.filter((at) => at <= killedMs + 300).at(-1)!
  const after = all.find((at) => at > killedMs + 300)!
  const gap = node.gaps[0]!
  // what a client saw comes later than the row by as long as its transaction took
  const late = TOLERANCE_MS + node.max
  const lastGood = Date.parse(gap.last_good_at!)
  const firstGood = Date.parse(gap.first_good_at!)
  expect(lastGood - before).toBeGreaterThan(-TOLERANCE_MS)
  expect(lastGood - before).toBeLessThan(late)
  expect(firstGood - after).toBeGreaterThan(-TOLERANCE_MS)
  expect(firstGood - after).toBeLessThan(late)
  expect(Math.abs(gap.length_ms - (after - before))).toBeLessThan(late)
  expect(Math.abs(gap.length_ms - node.longest_gap_ms)).toBeLessThan(1)
  expect(gap.errors['08001']).toBeGreaterThan(0)
  expect(Object.keys(gap.errors).every((sqlstate) => /^(08|57P)/.test(sqlstate))).toBe(true)
  // the others had none
  for (const i of [0, 2])
    expect(report.nodes[i]!.gaps.filter(({ errors }) => Object.keys(errors).length > 0)).toEqual([])
  expect(thresholds).toMatchObject([{ ok: false }])
  expect(run.exitCode).toBe(3)
  const failed = report.connection_failures ?? 0
  expect(report.failed).toBe(failed)
  // every good transaction is a row; a lost one may be
  const rows = (await Promise.all([0, 1, 2].map((i) => times(i)))).flat().length
  expect(rows).toBeGreaterThanOrEqual(report.processed)
  expect(rows).toBeLessThanOrEqual(report.processed + failed)
})

test('clients that keep their connections move to the other nodes, and the gap has no end', async () => {
  const { run } = await runOverDeath({}, false)
  const { report } = run
  expect([run.exitCode, report.aborted_clients]).toEqual([0, 0])
  expect(report.connection_failures).toBeGreaterThan(0)
  const node = report.nodes[VICTIM]!
  const gap = node.gaps[0]!
  expect(gap.last_good_at).not.toBeNull()
  expect(gap.first_good_at).toBeNull()
  expect(node.longest_gap_ms).toBeGreaterThan(300)
  expect(report.nodes.reduce((sum, one) => sum + one.connections, 0)).toBeGreaterThan(8)
})

test('without --reconnect its clients are aborted, as by pgbench, and the others go on', async () => {
  const { run } = await runOverDeath({ reconnect: undefined }, false)
  const { report } = run
  expect(run.exitCode).toBe(2)
  expect(report.aborted_clients).toBe(report.nodes[VICTIM]!.connections)
  expect(report.aborted_clients).toBeLessThan(8)
  expect(report.connection_failures).toBeNull()
  expect(report.nodes[VICTIM]!.gaps[0]?.first_good_at).toBeNull()
})
