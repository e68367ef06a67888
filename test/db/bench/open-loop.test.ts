/**
 * With a rate, transactions are due whether the server answers or not: a stall must show in every one that was due
 * while it lasted, not only in those that were on their way (coordinated omission). Beside pgbench, whose log tells.
 */
import { mkdtempSync, readdirSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { benchRun } from '../../support/bench-run.js'
import { type HoldingWire, startHoldingWire } from '../../support/holding-wire.js'
import { scriptFile } from '../../support/script-file.js'
import { isMissing } from '../../support/tools.js'
import { usePostgres } from '../../support/use-postgres.js'
import { waitFor } from '../../support/wait-for.js'
import { runProgram } from '../drivers/driver-rig.js'

const postgres = usePostgres({ version: 15 })

const RATE = 200
const STALL_MS = 1000
const CLIENTS = 4
const TRANSACTIONS = 150
/** Due in the first half of the stall, and so late by more than half of it; a Poisson count, four deviations below. */
const LATE_AT_LEAST = (RATE * STALL_MS) / 2000 - 4 * Math.sqrt((RATE * STALL_MS) / 2000)

let wire: HoldingWire

beforeEach(async () => {
  const { host, port } = postgres().servers[0]!
  wire = await startHoldingWire(host, port)
})
afterEach(() => wire.close())

const target = () =>
  `host=127.0.0.1 port=${wire.port} user=${postgres().user} dbname=${postgres().database}`

/** Waits until replies flow, then holds everything for the length of a stall. */
async function stallOnce(): Promise<void> {
  await waitFor(() => wire.received > 6000, { what: 'replies' })
  wire.hold()
  await new Promise((resolve) => setTimeout(resolve, STALL_MS))
  wire.release()
}

/** Latency and lag in ms of each transaction of a log file in pgbench's form. */
function readLog(directory: string): { latencyMs: number; lagMs: number }[] {
  return readdirSync(directory).flatMap((name) =>
    readFileSync(join(directory, name), 'utf8')
      .trim()
      .split('\n')
      .map((line) => {
        const words = line.split(' ')
        return { latencyMs: Number(words[2]) / 1000, lagMs: Number(words[6]) / 1000 }
      }),
  )
}

/** As pgbench does it: the least latency that so many percent do not exceed. */
function percentile(sorted: readonly number[], percent: number): number {
  return sorted[Math.max(0, Math.ceil((sorted.length * percent) / 100) - 1)]!
}

describe('a stalled server under a rate', () => {
  test('every transaction that was due is late, and percentiles, lag and log agree', async () => {
    const logs = mkdtempSync(join(tmpdir(), 'bench-open-'))
    const running = benchRun(target(), {
      file: [scriptFile('select 1;\n')],
      client: CLIENTS,
      transactions: TRANSACTIONS,
      rate: String(RATE),
      log: true,
      'log-prefix': join(logs, 'log'),
    })
    running.catch(() => undefined)
    await stallOnce()
    const { report } = await running
    const logged = readLog(logs)
    expect(logged).toHaveLength(CLIENTS * TRANSACTIONS)
    const latencies = logged.map(({ latencyMs }) => latencyMs).sort((a, b) => a - b)
    const late = latencies.filter((ms) => ms >= STALL_MS / 2).length
    expect(late).toBeGreaterThan(LATE_AT_LEAST)
    // a tenth of all is late by more than half of the stall: without lag only the four on their way would be
    expect(report.latency_ms.p90).toBeGreaterThan(STALL_MS / 4)
    for (const percent of [50, 90, 99] as const) {
      const truth = percentile(latencies, percent)
      const told = report.latency_ms[`p${percent}`]
      expect(Math.abs(told - truth)).toBeLessThanOrEqual(Math.max(0.002, truth * 0.002))
    }
    // latency counts from the planned start: it contains the lag
    for (const { latencyMs, lagMs } of logged) expect(latencyMs).toBeGreaterThanOrEqual(lagMs)
    const lags = logged.map(({ lagMs }) => lagMs)
    const average = (values: readonly number[]) =>
      values.reduce((sum, value) => sum + value, 0) / values.length
    expect(report.schedule_lag_ms!.average).toBeCloseTo(average(lags), 2)
    expect(report.schedule_lag_ms!.max).toBeCloseTo(Math.max(...lags), 2)
    expect(report.schedule_lag_ms!.max).toBeGreaterThan(STALL_MS / 2)
    expect(report.latency_ms.average).toBeCloseTo(average(latencies), 2)
  })

  test.skipIf(isMissing('pgbench'))('pgbench counts the same stall alike', async () => {
    const directory = mkdtempSync(join(tmpdir(), 'pgbench-open-'))
    const running = runProgram(
      'pgbench',
      [
        ...['-n', '-c', String(CLIENTS), '-t', String(TRANSACTIONS), '-R', String(RATE), '-l'],
        ...['-f', scriptFile('select 1;\n'), target()],
      ],
      { cwd: directory },
    )
    await stallOnce()
    const done = await running
    expect(done.stderr).not.toMatch(/error|aborted/)
    const logged = readLog(directory)
    const latencies = logged.map(({ latencyMs }) => latencyMs).sort((a, b) => a - b)
    expect(latencies.filter((ms) => ms >= STALL_MS / 2).length).toBeGreaterThan(LATE_AT_LEAST)
    expect(percentile(latencies, 90)).toBeGreaterThan(STALL_MS / 4)
    for (const { latencyMs, lagMs } of logged) expect(latencyMs).toBeGreaterThanOrEqual(lagMs)
  })

  test('a backend that is frozen holds up its client alone', async () => {
    const running = benchRun(
      `host=127.0.0.1 port=${postgres().servers[0]!.port} user=${postgres().user} dbname=${postgres().database} application_name=frozen`,
      {
        file: [scriptFile('select 1;\n')],
        client: 1,
        transactions: 4 * TRANSACTIONS,
        rate: String(RATE),
      },
    )
    running.catch(() => undefined)
    const pid = await waitFor(async () => {
      const rows = await postgres().query(
        "select pid from pg_stat_activity where application_name = 'frozen' and query = 'select 1;'",
      )
      return rows[0]?.['pid'] as number | undefined
    })
    process.kill(pid, 'SIGSTOP')
    await new Promise((resolve) => setTimeout(resolve, STALL_MS))
    process.kill(pid, 'SIGCONT')
    const { report } = await running
    const late = report.histogram
      .filter(({ from_ms }) => from_ms >= STALL_MS / 2)
      .reduce((sum, { count }) => sum + count, 0)
    expect(late).toBeGreaterThan(LATE_AT_LEAST * 0.8)
    expect(report.latency_ms.max).toBeGreaterThan(STALL_MS * 0.9)
  })
})
