/**
 * `pgshard serve` as a process: signals, pid file, the one line that says where it listens. Resolves with the exit code:
 * 0 drained, 1 forced.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { systemClock } from '../base/clock.js'
import { type Log, type LogLevel, openLog } from '../base/log.js'
import { loadConfig } from '../config/load-config.js'
import type { LoadedConfig, LoadOptions } from '../config/loaded-config.js'
import { engineError } from '../errors/engine-error.js'
import { openQueryPlanner } from '../routing/query-planner.js'
import { openServer } from '../server/open-server.js'
import { acceptClient } from '../session/accept-client.js'
import { type ServingProxy, startProxy } from './proxy.js'
import { traceClients } from './trace-clients.js'

export interface ServeOptions {
  readonly load: LoadOptions
  readonly version: string
  readonly host?: string
  readonly port?: number
  readonly workers?: number
  readonly pidFile?: string
  readonly logLevel?: LogLevel
  readonly logFormat?: 'text' | 'json'
  /** Writes client messages in libpq's trace form. */
  readonly trace?: (line: string) => void
  /** The line `listening on HOST:PORT`. */
  readonly announce: (line: string) => void
}

/** @throws CONFIG_INVALID, NET_LISTEN_FAILED, PROXY_* */
export async function serve(options: ServeOptions): Promise<number> {
  const config = loadConfig(options.load)
  let latest = config
  if ((options.workers ?? 1) > 1)
    throw engineError('PROXY_NOT_YET', { what: `--workers ${options.workers}` })
  const log = openProxyLog(options, config)
  const proxy = await startProxy({
    config,
    loadAgain: () => {
      latest = loadConfig(options.load)
      return latest
    },
    version: options.version,
    log,
    clock: systemClock,
    random: Math.random,
    openServer: (target, how) =>
      openServer(target, { ...how, preparedLimit: latest.general.preparedStatementsLimit }),
    knowledge: {
      makePlanner: (sharding, catalog) =>
        openQueryPlanner({
          sharding,
          catalog,
          assumeCleanFunctions: latest.general.assumeCleanFunctions,
          cacheSize: latest.general.queryCacheLimit,
        }),
      // Only sharded databases need it.
      readCatalog: async (ask) => (await import('../catalog/read-catalog.js')).readCatalog(ask),
    },
    acceptClient: options.trace ? traceClients(acceptClient, options.trace) : acceptClient,
    ...(options.host === undefined ? {} : { host: options.host }),
    ...(options.port === undefined ? {} : { port: options.port }),
  })
  const signals = listenToSignals(proxy, log)
  try {
    // Only now: a second process that finds the port in use must not touch the first one's file.
    if (options.pidFile !== undefined) writePidFile(options.pidFile)
  } catch (error) {
    proxy.shutdown(true)
    throw error
  }
  options.announce(`listening on ${proxy.host}:${proxy.port}`)
  const isDrained = await proxy.ended
  signals.close()
  if (options.pidFile !== undefined) rmSync(options.pidFile, { force: true })
  return isDrained ? 0 : 1
}

function openProxyLog(options: ServeOptions, { general }: LoadedConfig): Log {
  const format = options.logFormat ?? (general.logFormat === 'text' ? 'text' : 'json')
  const level = options.logLevel ?? general.logLevel
  return openLog({
    level: level === 'off' ? 'silent' : (level as LogLevel),
    json: format === 'json',
  })
}

/** @throws PROXY_PID_FILE */
function writePidFile(path: string): void {
  try {
    writeFileSync(path, `${process.pid}\n`)
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/,.*/, '') : String(error)
    throw engineError('PROXY_PID_FILE', { path, reason }, { cause: error })
  }
}

function listenToSignals(proxy: ServingProxy, log: Log): { close(): void } {
  const onReload = () => {
    // It logs its own failure; the old configuration stays.
    proxy.reload().catch(() => undefined)
  }
  const onStop = (signal: NodeJS.Signals) => {
    log.info('signal', { signal })
    proxy.shutdown()
  }
  process.on('SIGHUP', onReload)
  process.on('SIGINT', onStop)
  process.on('SIGTERM', onStop)
  return {
    close() {
      process.off('SIGHUP', onReload)
      process.off('SIGINT', onStop)
      process.off('SIGTERM', onStop)
    },
  }
}
