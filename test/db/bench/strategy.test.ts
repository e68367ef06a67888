/** `bench --strategy`: the host of each transaction is picked as the pool of the client library picks. */
import { afterEach, beforeAll, describe, expect, test } from 'vitest'
import { benchRun } from '../../support/bench-run.js'
import { scriptFile } from '../../support/script-file.js'
import { type Spoiler, startSpoiler } from '../../support/spoiler.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'

const postgres = usePostgres({ version: 15, count: 3 })
const spoilers: Spoiler[] = []

beforeAll(async () => {
  for (const server of postgres().servers) spoilers.push(await startSpoiler(server))
})
afterEach(async () => {
  for (const spoiler of spoilers) {
    await spoiler.refuse(false)
    spoiler.setDelayMs(0)
  }
})

const target = (list = [0, 1, 2]) => {
  const ports = list.map((i) => spoilers[i]!.port)
  return `host=${ports.map(() => '127.0.0.1').join(',')} port=${ports.join(',')} user=${postgres().user} dbname=${postgres().database} connect_timeout=5`
}

async function run(strategy: string, list?: number[], more: { transactions?: number } = {}) {
  const { report, exitCode } = await benchRun(target(list), {
    file: [scriptFile('select 1;\n')],
    client: 3,
    transactions: 100,
    strategy,
    ...more,
  })
  expect(exitCode).toBe(0)
  return report
}

const done = (report: Awaited<ReturnType<typeof run>>) =>
  report.nodes.map((node) => node.transactions)

describe('strategies', () => {
  test('J7, J40, J43: random: spread by weight, a pick a transaction, named in the report', async () => {
    const report = await run('random', [0, 1, 2, 1])
    expect(report.strategy).toBe('random')
    expect(report.nodes.map((node) => node.expected_share)).toEqual([0.25, 0.5, 0.25])
    expect(report.chi_square!.p).toBeGreaterThan(0.001)
    // three clients, at most one connection of each to a host, kept for the next pick
    for (const node of report.nodes) expect(node.connections).toBeLessThanOrEqual(3)
  })

  test('round robin: exactly even', async () => {
    expect(done(await run('round_robin'))).toEqual([100, 100, 100])
  })

  test('server affinity: the first host has all, the next one when it is down', async () => {
    expect(done(await run('server_affinity'))).toEqual([300, 0, 0])
    await spoilers[0]!.refuse(true)
    const report = await run('server_affinity')
    expect(done(report)).toEqual([0, 300, 0])
    expect(report.nodes[0]!.connect_failures).toBeGreaterThan(0)
  })

  test('a host that dies is left by those that used it, without a failure where they were elsewhere', async () => {
    for (const i of [0, 1, 2]) await postgres().query('create table seen(n int)', [], i)
    const rows = async (server: number) =>
      (await postgres().query('select count(*)::int as n from seen', [], server))[0]!['n'] as number
    const interrupt = new AbortController()
    const running = benchRun(
      target(),
      {
        file: [scriptFile('insert into seen values (1);\n')],
        client: 1,
        time: 60,
        transactions: undefined,
        strategy: 'server_affinity',
        reconnect: 30,
      },
      interrupt.signal,
    )
    running.catch(() => undefined)
    await waitFor(async () => (await rows(0)) > 10)
    await spoilers[0]!.refuse(true)
    spoilers[0]!.strike('reset')
    await waitFor(async () => (await rows(1)) > 10)
    const before = await rows(0)
    await spoilers[0]!.refuse(false)
    // it is asked again when the blocklist forgets it
    await waitFor(async () => (await rows(0)) > before + 5, { deadlineMs: 30_000 })
    interrupt.abort()
    const { report, exitCode } = await running
    expect([exitCode, report.aborted_clients]).toEqual([0, 0])
    expect(report.connection_failures).toBeLessThanOrEqual(1)
    expect(report.nodes[0]!.connections).toBeGreaterThan(1)
    expect(report.nodes[1]!.transactions).toBeGreaterThan(0)
  })

  test('best response time: a slow host gets next to nothing', async () => {
    spoilers[2]!.setDelayMs(60)
    const report = await run('best_response_time', undefined, { transactions: 200 })
    const [first, second, slow] = done(report) as [number, number, number]
    expect(first + second + slow).toBe(600)
    expect(slow).toBeLessThan(60)
  })
})
