import type { CatalogueEntry } from '../catalogue-entry.js'

export const clientErrors = {
  CLIENT_STRATEGY: {
    sqlstate: '22023',
    message: 'balancing strategy {name} cannot be used (InvalidLoadBalanceStrategy): {reason}',
    hint: 'use random, round_robin, best_response_time or server_affinity, an object with pick(), or the path of an ES module whose default export has one',
    exit: 2,
  },
  CLIENT_EXCEPTION_CHECKER: {
    sqlstate: '22023',
    message:
      'exception checker {name} cannot be used (InvalidLoadBalanceExceptionChecker): {reason}',
    hint: 'give a function of an error, or the path of an ES module whose default export is one',
    exit: 2,
  },
  CLIENT_ALL_DOWN: {
    sqlstate: '08001',
    message: 'no host of {count} could be reached after {rounds} rounds: {reason}',
    hint: 'check that one of the hosts runs; allow more rounds with retriesAllDown',
    retry: 'safe',
    exit: 4,
  },
  CLIENT_CLOSED: {
    sqlstate: '08003',
    message: 'the connection is closed: {reason}',
    hint: 'connect again, or set autoReconnect',
    exit: 1,
  },
  CLIENT_POOL_TIMEOUT: {
    sqlstate: '08001',
    message: 'no connection came free within {timeoutMs} ms',
    hint: 'raise max or connectionTimeoutMillis, or release connections sooner',
    retry: 'safe',
    exit: 1,
  },
  CLIENT_HOST: {
    sqlstate: '22023',
    message: 'host {host}: {reason}',
    hint: 'hosts are named host:port, as in stats().hosts',
    exit: 2,
  },
} as const satisfies Record<string, CatalogueEntry>
