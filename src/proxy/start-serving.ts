/** A proxy with everything that it is lent: planner, catalogue reader, opener of servers, sessions. For `serve`, in one process or as a worker. */
import { systemClock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import type { LoadedConfig } from '../config/loaded-config.js'
import { resolveName } from '../net/connect.js'
import { NameCache } from '../net/name-cache.js'
import { PluginHost } from '../plugins/plugin-host.js'
import { plannerOptions } from '../routing/planner-options.js'
import { openQueryPlanner } from '../routing/query-planner.js'
import { openServer } from '../server/open-server.js'
import { acceptClient } from '../session/accept-client.js'
import { keepAliveOf } from './clients/open-listeners.js'
import { traceClients } from './clients/trace-clients.js'
import { HomeNumbers } from './databases/home-numbers.js'
import { pluginSurroundings } from './databases/plugin-surroundings.js'
import type { Fleet } from './fleet.js'
import { timedPlanner } from './observe/timed-planner.js'
import { type ServingProxy, startProxy } from './proxy.js'
import type { ProxyOptions } from './proxy-options.js'

/** The configuration that was read last, which may not be in force yet. */
export interface NewestConfig {
  newest: LoadedConfig
}

export interface ServingOptions {
  readonly config: NewestConfig
  /** Reads the configuration again. */
  readonly loadAgain: (settings?: ReadonlyMap<string, string>) => LoadedConfig
  readonly version: string
  readonly log: Log
  /** Win over the file. */
  readonly host?: string
  readonly port?: number
  /** Writes client messages in libpq's trace form. */
  readonly trace?: (line: string) => void
  /** Present in a worker. */
  readonly fleet?: Fleet
  readonly onTwoPhaseStep?: NonNullable<ProxyOptions['onTwoPhaseStep']>
}

/** @throws NET_LISTEN_FAILED, PROXY_* */
export async function startServing(options: ServingOptions): Promise<ServingProxy> {
  const { config, loadAgain, trace, ...rest } = options
  const general = () => config.newest.general
  const names = new NameCache({
    clock: systemClock,
    resolve: resolveName,
    ttlMs: () => general().dnsTtlMs ?? 0,
  })
  const numbers = new HomeNumbers()
  const plugins = new PluginHost({ log: options.log, clock: systemClock })
  await plugins.start(config.newest.plugins)
  return startProxy({
    ...rest,
    beforeEnd: () => plugins.stop(),
    config: config.newest,
    loadAgain: (settings) => {
      config.newest = loadAgain(settings)
      return config.newest
    },
    clock: systemClock,
    random: Math.random,
    openServer: numbers.opening((target, how) =>
      openServer(target, {
        ...how,
        ...keepAliveOf(config.newest.tcp),
        preparedLimit: general().preparedStatementsLimit,
        ...(general().dnsTtlMs === undefined ? {} : { resolve: names.lookup }),
      }),
    ),
    names,
    knowledge: {
      makePlanner: async (sharding, catalog, database) => {
        const read = await openQueryPlanner({
          sharding,
          catalog,
          ...plannerOptions(config.newest, database),
        })
        const { logMinDurationParseMs: minMs, logQuerySampleLength: sampleLength } = general()
        const timed = { clock: systemClock, log: options.log, database, sampleLength }
        const planner = minMs === undefined ? read : timedPlanner(read, { ...timed, minMs })
        if (plugins.isEmpty) return planner
        const { makePluginPlanner } = await import('../plugins/plugin-planner.js')
        const around = pluginSurroundings(config.newest, database, sharding)
        return makePluginPlanner({ planner, host: plugins, around })
      },
      // Only sharded databases need it.
      readCatalog: async (ask) => (await import('../catalog/read-catalog.js')).readCatalog(ask),
      readNumbers: (pools, open) => numbers.read(pools, open),
    },
    acceptClient: trace ? traceClients(acceptClient, trace) : acceptClient,
  })
}
