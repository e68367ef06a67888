/** From a loaded configuration and flags to one run of setup. */
import { engineError } from '../errors/engine-error.js'
import type { ShardingConfig } from '../sharding/sharded-table.js'
import type { DatabaseTopology } from '../topology/topology.js'
import { type DropReport, dropSetup } from './drop-setup.js'
import { runSetup, type SetupReport } from './run-setup.js'
import { findSetupTarget, type SetupUser } from './setup-target.js'

/** The part of a loaded configuration that setup looks at. */
export interface SetupConfig {
  readonly databases: readonly DatabaseTopology[]
  readonly sharding: ReadonlyMap<string, ShardingConfig>
  readonly users: readonly SetupUser[]
}

export interface SetupRequest {
  readonly database?: string | undefined
  readonly username?: string | undefined
  readonly password?: string | undefined
  readonly guards: boolean
  readonly dryRun: boolean
  readonly drop: boolean
}

/** @throws SETUP_DATABASE_UNKNOWN, SETUP_NO_ACCOUNT, SETUP_DROP_UNNAMED, before anything is connected */
export function prepareSetup(
  config: SetupConfig,
  request: SetupRequest,
): { run(): Promise<SetupReport | DropReport> } {
  const account =
    request.username === undefined
      ? undefined
      : {
          user: request.username,
          ...(request.password === undefined ? {} : { password: request.password }),
        }
  const target = findSetupTarget(config.databases, config.users, request.database, account)
  if (request.drop && request.database === undefined) {
    throw engineError('SETUP_DROP_UNNAMED', { name: target.database })
  }
  const sharding = config.sharding.get(target.database)
  return {
    run: () =>
      request.drop
        ? dropSetup(target, request.dryRun)
        : runSetup(target, sharding, { guards: request.guards, dryRun: request.dryRun }),
  }
}
