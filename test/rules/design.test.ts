/** Rows of the requirements that are about how the house is built: that the parts are there. */
import { existsSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'

const missing = (paths: readonly string[]) => paths.filter((path) => !existsSync(path))

test('D14: demo, integration suites and scripts are there, and CI runs them', () => {
  expect(
    missing(['commands/demo.ts', 'test/db', 'test/oracle', 'test/scenario', 'scripts', 'bench']),
  ).toEqual([])
  expect(readFileSync('.ci/run', 'utf8')).toMatch(/npm (test|run test)/)
})

test('D26: a session has parts of its own for clients, requests, figures and transactions', () => {
  expect(
    missing([
      'src/proxy/clients/client-registry.ts',
      'src/session/session.ts',
      'src/session/requests/simple-query.ts',
      'src/session/requests/extended-query.ts',
      'src/session/requests/batch-builder.ts',
      'src/session/client-figures.ts',
      'src/session/state/transaction.ts',
    ]),
  ).toEqual([])
})

test('D28: the servers’ side has parts of its own, and tests of them', () => {
  expect(
    missing([
      'src/server/server-connection.ts',
      'src/pool/pool-map.ts',
      'src/pool/resource-pool.ts',
      'src/pool/checkout.ts',
      'src/pool/server-pool.ts',
      'src/pool/shard-pools.ts',
      'src/pool/balancer.ts',
      'src/pool/health.ts',
      'src/pool/roles.ts',
      'src/pool/lent-count.ts',
      'src/pool/wait-queue.ts',
      'src/executor/fan-out.ts',
      'src/session/state/held-servers.ts',
      'src/proxy/console/view.ts',
      'test/unit/pool/balancer.test.ts',
      'test/unit/pool/health.test.ts',
      'test/unit/pool/resource-pool.test.ts',
      'test/unit/pool/pool-lifecycle.test.ts',
      'test/unit/pool/user-pools.test.ts',
      'test/db/pool/pool.test.ts',
    ]),
  ).toEqual([])
})

test('D223: what the design is to save has benchmarks: pooling against PgBouncer, idle clients', () => {
  expect(missing(['bench/pooler.mjs', 'bench/idle-clients.mjs'])).toEqual([])
  expect(readFileSync('bench/pooler.mjs', 'utf8')).toMatch(/pgbouncer/i)
})
