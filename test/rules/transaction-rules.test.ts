/**
 * Each rule of transactions over shards (hard-parts §3) and the tests that fail without it. A rule whose test is renamed or
 * taken out fails here.
 */
import { readFileSync } from 'node:fs'
import { describe, expect, it } from 'vitest'

const files = {
  implicit: 'test/db/transactions/implicit.test.ts',
  transactions: 'test/db/session/sharded-transactions.test.ts',
  writes: 'test/db/writes/scattered.test.ts',
  deadlocks: 'test/db/transactions/deadlocks.test.ts',
  processes: 'test/db/transactions/deadlocks-between-processes.test.ts',
  graph: 'test/unit/executor/deadlock-graph.test.ts',
  cycles: 'test/unit/pool/holder-cycles.test.ts',
  twoPhase: 'test/db/two-phase.test.ts',
  rules: 'test/db/two-phase-rules.test.ts',
  serve: 'test/db/transactions/two-phase-through-serve.test.ts',
  show: 'test/db/transactions/show-transactions.test.ts',
  kill: 'test/scenario/transfers-kill.test.ts',
  config: 'test/unit/config/cross-shard-writes.test.ts',
} as const

/** Rule → file → a part of the test's title. */
const rules: readonly (readonly [string, keyof typeof files, string])[] = [
  ['3.1 a pipeline is one transaction', 'implicit', 'pipelines of 2 to 20 statements'],
  ['3.1 a string is one transaction', 'implicit', 'strings of 2 to 20 statements'],
  ['3.1 the commit comes before ReadyForQuery', 'implicit', 'looked at when the request commits'],
  ['3.2 one snapshot of every shard', 'transactions', 'see one moment of every shard'],
  ['3.2 SERIALIZABLE is refused', 'transactions', 'stay on one shard when they are SERIALIZABLE'],
  ['3.2 per_shard', 'transactions', 'lets them go over shards, serializable on each'],
  ['3.2 now() is one value', 'writes', 'the time of the transaction is one value'],
  ['3.3 40P01 for the youngest', 'deadlocks', 'end by the youngest, who hears 40P01'],
  ['3.3 over workers', 'processes', 'of two workers end by the younger'],
  ['3.3 over proxies', 'processes', 'of two proxies end by the younger'],
  ['3.3 prepared holders', 'processes', 'prepared and cannot decide end by it'],
  ['3.3 prepared holders', 'graph', 'takes a prepared transaction for the one that prepared it'],
  ['3.4 all or none', 'cycles', 'a scatter gives back what it has not used'],
  ['3.4 all or none', 'deadlocks', 'scatters take their servers all or none'],
  ['3.4 holders wait ahead, one slot is kept', 'cycles', 'one slot is kept for those that hold'],
  ['3.4 a cycle fails the youngest at once', 'cycles', 'the youngest fails at once with 40001'],
  ['3.4 small pools never hang', 'deadlocks', 'never hang: transactions over shards'],
  ['3.5 the key is a hash', 'rules', 'does not let who reads it decide'],
  ['3.5 gid', 'rules', 'names cluster, deciding shard'],
  ['3.5 fixed search_path, grants', 'rules', 'have a fixed search_path'],
  ['3.5 SET CONSTRAINTS ALL IMMEDIATE', 'rules', 'deferred constraints are looked at'],
  ['3.5 SET LOCAL ROLE NONE', 'rules', 'the role is put back'],
  ['3.5 the decider has an xid', 'rules', 'the deciding shard has a transaction id'],
  ['3.5 an abort row means 40001', 'twoPhase', 'makes the late decider fail with 40001'],
  ['3.5 grace', 'twoPhase', 'leaves young transactions alone'],
  ['3.5 who recovers', 'serve', 'when a configured superuser recovers, else is told why not'],
  ['3.5 commit rows', 'rules', 'stays until every shard that it lists'],
  ['3.5 commit rows', 'rules', 'is not forgotten while a shard is pending'],
  ['3.5 look-ups by database', 'show', 'lists a prepared transaction of a dead process'],
  ['3.5 who cannot be prepared decides', 'twoPhase', 'lets the shard decide that cannot be'],
  ['3.5 a stuck second phase', 'serve', 'COMMIT says which one'],
  ['3.5 every step', 'kill', 'dies at every step'],
  ['3.6 two_phase_commit = false', 'config', 'a written two_phase_commit = false means error'],
  ['3.6 error', 'transactions', 'refuses the second shard before anything is written there'],
  ['3.6 best_effort warns', 'config', 'best_effort is taken by name only'],
  ['3.6 best_effort gives a NOTICE', 'transactions', 'commits shard by shard, and says so'],
]

describe('rules of transactions over shards', () => {
  const texts = new Map(Object.values(files).map((path) => [path, readFileSync(path, 'utf8')]))

  for (const [rule, file, title] of rules) {
    it(`${rule}: ${title}`, () => {
      const titles = [
        ...(texts.get(files[file]) ?? '').matchAll(/\b(?:it|test)\(\s*['"`]([^\n]*)/g),
      ]
      expect(titles.filter(([, text]) => text?.includes(title))).toHaveLength(1)
    })
  }
})
