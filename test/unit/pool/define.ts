/** Definitions of pools for tests: everything off that a test does not ask for. */
import type { HostDefinition, PoolDefinition } from '../../../src/pool/definition.js'
import type { PoolLimits } from '../../../src/pool/pool-types.js'
import { fakeLimits } from './fake-kind.js'

export function defineHost(
  host: Partial<Omit<HostDefinition, 'limits'>> & {
    port?: number
    limits?: Partial<PoolLimits>
  } = {},
): HostDefinition {
  const { port = 5432, target, limits, ...rest } = host
  return {
    target: target ?? { host: '127.0.0.1', port, user: 'postgres', database: 'app' },
    role: 'primary',
    weight: 255,
    ...rest,
    limits: { ...fakeLimits, ...limits },
  }
}

export function definePool(
  hosts: readonly (readonly HostDefinition[])[],
  rest: Partial<PoolDefinition> = {},
): PoolDefinition {
  return {
    user: 'u',
    database: 'app',
    layout: `${hosts.length} shards`,
    shards: hosts.map((shard) => ({ hosts: shard })),
    strategy: 'round_robin',
    readWriteSplit: 'include_primary',
    readWriteStrategy: 'conservative',
    readsYourWrites: false,
    maxDbConnections: Number.POSITIVE_INFINITY,
    maxUserConnections: Number.POSITIVE_INFINITY,
    connect: { timeoutMs: 2000, attempts: 1, attemptDelayMs: 0 },
    health: {
      idleCheckIntervalMs: 30_000,
      firstCheckDelayMs: 5000,
      banTimeoutMs: 300_000,
      checkTimeoutMs: 1000,
      isDistrustful: false,
      banLagMs: Number.POSITIVE_INFINITY,
      banLagBytes: Number.POSITIVE_INFINITY,
    },
    roleCheckIntervalMs: 200,
    lagCheckDelayMs: Number.POSITIVE_INFINITY,
    poolerMode: 'transaction',
    schemaAdmin: false,
    preparedTtlMs: Number.POSITIVE_INFINITY,
    preparedTtlJitterMs: 0,
    ...rest,
  }
}
