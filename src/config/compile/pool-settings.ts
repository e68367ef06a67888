/** Resolves the settings of one pool: user, then database entry, then general; for the role that the host has now. */
import type { Host, PoolerMode, PoolOverrides } from '../../topology/topology.js'
import type { GeneralConfig } from '../keys/config-sections.js'

export interface PoolSettings {
  readonly mode: PoolerMode
  readonly maxSize: number
  readonly minSize: number
  readonly idleTimeoutMs: number
  readonly serverLifetimeMs: number
  readonly serverLifetimeJitterMs: number
  /** undefined: the server's own. */
  readonly statementTimeoutMs?: number
  readonly lockTimeoutMs?: number
  readonly readOnly: boolean
}

const byRole = (
  overrides: PoolOverrides,
  role: 'primary' | 'replica',
): { max?: number | undefined; min?: number | undefined; idleMs?: number | undefined } =>
  role === 'primary'
    ? {
        max: overrides.poolSizePrimary ?? overrides.poolSize,
        min: overrides.minPoolSizePrimary ?? overrides.minPoolSize,
        idleMs: overrides.idleTimeoutPrimaryMs ?? overrides.idleTimeoutMs,
      }
    : {
        max: overrides.poolSizeReplica ?? overrides.poolSize,
        min: overrides.minPoolSizeReplica ?? overrides.minPoolSize,
        idleMs: overrides.idleTimeoutReplicaMs ?? overrides.idleTimeoutMs,
      }

/** What the pool of a user on a host may do. */
export function poolSettings(
  general: GeneralConfig,
  host: Host,
  user: PoolOverrides & { readonly readOnly?: boolean },
  role: 'primary' | 'replica' = host.role === 'replica' ? 'replica' : 'primary',
): PoolSettings {
  const ofUser = byRole(user, role)
  const ofHost = byRole(host, role)
  const maxSize = ofUser.max ?? ofHost.max ?? general.defaultPoolSize
  const statementTimeoutMs = user.statementTimeoutMs ?? host.statementTimeoutMs
  const lockTimeoutMs = user.lockTimeoutMs ?? host.lockTimeoutMs
  return Object.freeze({
    mode: user.poolerMode ?? host.poolerMode ?? general.poolerMode,
    maxSize,
    minSize: Math.min(ofUser.min ?? ofHost.min ?? general.minPoolSize, maxSize),
    idleTimeoutMs: ofUser.idleMs ?? ofHost.idleMs ?? general.idleTimeoutMs,
    serverLifetimeMs: user.serverLifetimeMs ?? host.serverLifetimeMs ?? general.serverLifetimeMs,
    serverLifetimeJitterMs:
      user.serverLifetimeJitterMs ?? host.serverLifetimeJitterMs ?? general.serverLifetimeJitterMs,
    ...(statementTimeoutMs === undefined ? {} : { statementTimeoutMs }),
    ...(lockTimeoutMs === undefined ? {} : { lockTimeoutMs }),
    readOnly: user.readOnly ?? host.readOnly ?? false,
  })
}
