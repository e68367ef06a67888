/** A proxy with everything that it is lent: planner, catalogue reader, opener of servers, sessions. For `serve`, in one process or as a worker. */
import { systemClock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import type { LoadedConfig } from '../config/loaded-config.js'
import { resolveName } from '../net/connect.js'
import { NameCache } from '../net/name-cache.js'
import { openQueryPlanner } from '../routing/query-planner.js'
import { openServer } from '../server/open-server.js'
import { acceptClient } from '../session/accept-client.js'
import type { Fleet } from './fleet.js'
import { keepAliveOf } from './open-listeners.js'
import { type ServingProxy, startProxy } from './proxy.js'
import { traceClients } from './trace-clients.js'

/** The configuration that was read last, which may not be in force yet. */
export interface NewestConfig {
  newest: LoadedConfig
}

export interface ServingOptions {
  readonly config: NewestConfig
  /** Reads the configuration again. */
  readonly loadAgain: () => LoadedConfig
  readonly version: string
  readonly log: Log
  /** Win over the file. */
  readonly host?: string
  readonly port?: number
  /** Writes client messages in libpq's trace form. */
  readonly trace?: (line: string) => void
  /** Present in a worker. */
  readonly fleet?: Fleet
}

/** @throws NET_LISTEN_FAILED, PROXY_* */
export function startServing(options: ServingOptions): Promise<ServingProxy> {
  const { config, loadAgain, trace, ...rest } = options
  const general = () => config.newest.general
  const names = new NameCache({
    clock: systemClock,
    resolve: resolveName,
    ttlMs: () => general().dnsTtlMs ?? 0,
  })
  return startProxy({
    ...rest,
    config: config.newest,
    loadAgain: () => {
      config.newest = loadAgain()
      return config.newest
    },
    clock: systemClock,
    random: Math.random,
    openServer: (target, how) =>
      openServer(target, {
        ...how,
        ...keepAliveOf(config.newest.tcp),
        preparedLimit: general().preparedStatementsLimit,
        ...(general().dnsTtlMs === undefined ? {} : { resolve: names.lookup }),
      }),
    names,
    knowledge: {
      makePlanner: (sharding, catalog) =>
        openQueryPlanner({
          sharding,
          catalog,
          assumeCleanFunctions: general().assumeCleanFunctions,
          cacheSize: general().queryCacheLimit,
        }),
      // Only sharded databases need it.
      readCatalog: async (ask) => (await import('../catalog/read-catalog.js')).readCatalog(ask),
    },
    acceptClient: trace ? traceClients(acceptClient, trace) : acceptClient,
  })
}
