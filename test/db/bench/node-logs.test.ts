/** What the nodes themselves say of a run: their logs, their tables, their settings. */
import { readFileSync } from 'node:fs'
import { beforeAll, describe, expect, test } from 'vitest'
import { initTables } from '../../../src/bench/init/init-tables.js'
import { pgbenchLines } from '../../../src/bench/report/report-text.js'
import { clusterStatus } from '../../../src/cluster/cluster.js'
import { adminQuery, closePg } from '../../../src/pg/admin-query.js'
import { connectPg, readConninfo } from '../../../src/pg/connect.js'
import { openServer } from '../../../src/server/open-server.js'
import { benchRun } from '../../support/bench-run.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const settings = { log_connections: 'on', log_statement: 'all', log_line_prefix: "'%d '" }

describe('three nodes', () => {
  const postgres = usePostgres({ version: 15, count: 3, settings })
  const logs: string[] = []

  const conninfo = (more = 'load_balance_hosts=random connect_timeout=30') => {
    const { user, database, servers } = postgres()
    return `host=${servers.map(({ host }) => host).join()} port=${servers.map(({ port }) => port).join()} user=${user} dbname=${database} ${more}`
  }

  const init = () =>
    initTables(
      {
        conninfo: readConninfo(conninfo()),
        scale: 1,
        fillfactor: 100,
        unlogged: true,
        steps: ['d', 't', 'g', 'v', 'p'],
        partitions: 0,
        partitionMethod: 'range',
        quiet: true,
      },
      { say: () => undefined },
    )

  beforeAll(async () => {
    await init()
    const { servers } = await clusterStatus(postgres().directory)
    logs.push(...servers.map(({ logFile }) => logFile))
  })

  const lines = (node: number, pattern: RegExp) =>
    (readFileSync(logs[node]!, 'utf8').match(pattern) ?? []).length
  const connections = (node: number) =>
    lines(node, new RegExp(`connection authorized: .*database=${postgres().database}`, 'g'))
  const history = async () =>
    Promise.all(
      [0, 1, 2].map(async (node) =>
        Number(
          (await postgres().query('select count(*)::int as n from pgbench_history', [], node))[0]![
            'n'
          ],
        ),
      ),
    )

  test('L42, L43, L44, L69: one connection string in place of the database, the same database on whichever port', async () => {
    const ports = new Set<string>()
    for (let i = 0; i < 40; i++) {
      const client = await connectPg(conninfo())
      const [row] = await adminQuery(
        client,
        "select current_database() as db, current_setting('port') as port",
      )
      expect(row!['db']).toBe(postgres().database)
      expect(row!['port']).toBe(String(client.port))
      ports.add(row!['port']!)
      await closePg(client)
    }
    expect([...ports].sort()).toEqual(
      postgres()
        .servers.map(({ port }) => String(port))
        .sort(),
    )
  })

  test('L45, L46, L47, L50, L56: -C connects once a transaction, and each node has what the report says of it', async () => {
    const before = [0, 1, 2].map(connections)
    const rows = await history()
    const vacuums = [0, 1, 2].map((node) => lines(node, /statement: vacuum/gi))
    const run = await benchRun(conninfo(), { client: 2, connect: true, transactions: 100 })
    expect([run.exitCode, run.report.processed]).toEqual([0, 200])
    const after = await history()
    const shares = run.report.nodes.map(({ transactions }) => transactions)
    expect(after.map((n, node) => n - rows[node]!)).toEqual(shares)
    // beside its transactions a node may be asked before the run, for scale and partitions, and by this test
    for (const node of [0, 1, 2]) {
      const extra = connections(node) - before[node]! - shares[node]!
      expect(extra).toBeGreaterThanOrEqual(0)
      expect(extra).toBeLessThanOrEqual(4)
    }
    expect([0, 1, 2].map((node) => lines(node, /statement: vacuum/gi))).toEqual(vacuums)
    const text = pgbenchLines(run.report, { isMeasured: false }).join('\n')
    expect(text).toMatch(/average connection time = [\d.]+ ms/)
    expect(text).toMatch(/tps = [\d.]+ \(including reconnection times\)/)
  })

  test('L50: without -n every node is vacuumed once', async () => {
    const vacuums = [0, 1, 2].map((node) => lines(node, /statement: vacuum pgbench_branches/gi))
    await benchRun(conninfo(), { 'no-vacuum': false, transactions: 1 })
    expect([0, 1, 2].map((node) => lines(node, /statement: vacuum pgbench_branches/gi))).toEqual(
      vacuums.map((count) => count + 1),
    )
  })

  test('L52: another init empties the history of every node', async () => {
    expect((await history()).reduce((sum, n) => sum + n, 0)).toBeGreaterThan(0)
    await init()
    expect(await history()).toEqual([0, 0, 0])
  })

  test('L59: failed transactions are a number and a percentage; a node that refuses lowers what is processed', async () => {
    const flags = { client: 6, connect: true, transactions: 10 }
    const good = await benchRun(conninfo(), flags)
    expect(pgbenchLines(good.report, { isMeasured: false })).toContain(
      'number of failed transactions: 0 (0.000%)',
    )
    await postgres().query(
      'alter table pgbench_history add constraint no check (false) not valid',
      [],
      1,
    )
    const bad = await benchRun(conninfo(), flags)
    await postgres().query('alter table pgbench_history drop constraint no', [], 1)
    expect(bad.exitCode).toBe(2)
    expect(bad.report.processed).toBeLessThan(60)
    expect(bad.report.nodes[1]!.errors).toBeGreaterThan(0)
  })

  test('L36: a cancel goes to the one address of its session', async () => {
    const { servers, user, database } = postgres()
    const before = [0, 1, 2].map((node) => lines(node, /canceling statement/g))
    const { host, port } = servers[2]!
    const server = await openServer({ host, port, user, database }, { timeoutMs: 30_000 })
    const work = server.query('select pg_sleep(120)').then(
      () => 'ended',
      (error: Error) => error.message,
    )
    await waitFor(
      async () =>
        (
          await postgres().query(
            "select 1 from pg_stat_activity where query like 'select pg_sleep(120)%' and state = 'active' and pid <> pg_backend_pid()",
            [],
            2,
          )
        ).length > 0,
      { what: 'the statement runs', deadlineMs: 30_000 },
    )
    await server.cancel()
    expect(await work).toContain('canceling statement due to user request')
    server.destroy()
    expect([0, 1, 2].map((node) => lines(node, /ERROR: +canceling statement/g))).toEqual([
      before[0],
      before[1],
      before[2]! + 1,
    ])
  })
})

describe('a primary and two standbys', () => {
  const postgres = usePostgres({ count: 1, replicas: 2 })

  test('L37: load balancing and target_session_attrs together: standbys share, the primary gets nothing', async () => {
    const { user, database, servers, replicas } = postgres()
    const nodes = [...servers, ...replicas]
    const target = `host=${nodes.map(({ host }) => host).join()} port=${nodes.map(({ port }) => port).join()} user=${user} dbname=${database} load_balance_hosts=random target_session_attrs=standby connect_timeout=30`
    for (const { host, port } of replicas) {
      const one = `host=${host} port=${port} user=${user} dbname=${database}`
      const ready = () => connectPg(one).then((client) => closePg(client).then(() => true))
      await waitFor(ready, { what: 'the database on the standby', deadlineMs: 30_000 })
    }
    const seen = new Map<number, number>()
    for (let i = 0; i < 40; i++) {
      const client = await connectPg(target)
      seen.set(client.port, (seen.get(client.port) ?? 0) + 1)
      await closePg(client)
    }
    expect([...seen.keys()].sort()).toEqual(replicas.map(({ port }) => port).sort())
    for (const count of seen.values()) expect(count).toBeGreaterThan(5)
  })
})
