/** What --log writes, on a clock of the test. */
import { mkdtempSync, readFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import {
  type LoggedTransaction,
  TransactionLog,
} from '../../../src/bench/clients/transaction-log.js'

const good: LoggedTransaction = {
  client: 0,
  number: 1,
  script: 0,
  ending: 'done',
  latencyUs: 100,
  lagUs: 7,
  tries: 1,
}

function logOf(plan: { aggregateMs?: number }, isDetailed = false) {
  const prefix = join(mkdtempSync(join(tmpdir(), 'transaction-log-')), 'log')
  let nowMs = 0
  const log = new TransactionLog({
    plan: { prefix, processId: 7, ...plan },
    thread: 0,
    seed: 1n,
    hasRate: true,
    hasRetries: true,
    isDetailed,
    nowMs: () => nowMs,
  })
  return {
    begin: (atMs: number) => {
      nowMs = atMs
      log.begin()
    },
    note: (atMs: number, transaction: Partial<LoggedTransaction> = {}) => {
      nowMs = atMs
      log.note({ ...good, ...transaction })
    },
    lines: (atMs: number) => {
      nowMs = atMs
      log.close()
      return readFileSync(`${prefix}.7`, 'utf8').trimEnd().split('\n')
    },
  }
}

test('intervals are whole seconds of the day, from the one in which the run began', () => {
  const log = logOf({ aggregateMs: 1000 })
  log.begin(5700)
  log.note(5900)
  log.note(6100, { latencyUs: 50 })
  log.note(6200)
  expect(log.lines(8300)).toEqual([
    '5 1 100 10000 100 100 7 49 7 7 0 0 0 0 0',
    '6 2 150 12500 50 100 14 98 7 7 0 0 0 0 0',
    '7 0 0 0 0 0 0 0 0 0 0 0 0 0 0',
  ])
})

test('failures have their columns in intervals only when they are asked for by kind', () => {
  for (const [isDetailed, failures] of [
    [false, '0 0'],
    [true, '2 1'],
  ] as const) {
    const log = logOf({ aggregateMs: 1000 }, isDetailed)
    log.begin(1000)
    log.note(1100, { ending: 'serialization', tries: 3 })
    log.note(1100, { ending: 'serialization' })
    log.note(1100, { ending: 'deadlock' })
    expect(log.lines(2000)).toEqual([`1 0 0 0 0 0 0 0 0 0 0 1 2 ${failures}`])
  }
})

test('what failed or was skipped has no lag', () => {
  const log = logOf({})
  log.begin(1000)
  log.note(1500)
  log.note(1500, { ending: 'serialization', tries: 2, number: 2 })
  log.note(1500, { ending: 'skipped', number: 3 })
  expect(log.lines(2000)).toEqual([
    '0 1 100 0 1 500000 7 0',
    '0 2 failed 0 1 500000 0 1',
    '0 3 skipped 0 1 500000 0 0',
  ])
})
