/**
 * `pgshard serve` with as many processes as are asked for; one needs no primary. The signals, the pid file and the line
 * that says where it listens are the primary's. Resolves with the exit code: 0 drained, 1 forced.
 */
import { rmSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { systemClock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { loadConfig } from '../config/load-config.js'
import type { GeneralConfig, LoadedConfig } from '../config/loaded-config.js'
import { MAX_WORKERS } from '../proxy/fleet.js'
import { type Outlets, openOutlets } from '../proxy/observe/open-outlets.js'
import { openProxyLog, type ServeOptions, serve, writePidFile } from '../proxy/serve.js'
import { tightestLimit } from './share-limits.js'
import { WorkerFleet } from './worker-fleet.js'

export interface ServeWorkersOptions extends ServeOptions {
  /** Wins over the file; `auto`: one a core, 0 and 1: one process. */
  readonly workers?: number | 'auto'
}

/** @throws CONFIG_INVALID, NET_LISTEN_FAILED, PROXY_*, WORKER_* */
export async function serveWorkers(options: ServeWorkersOptions): Promise<number> {
  const config = loadConfig(options.load)
  const log = openProxyLog(options, config)
  const count = workerCount(wantedWorkers(options.workers, config.general), config, log)
  return count === 1 ? serve(options, config) : serveFleet(options, config, { count, log })
}

/** PgDog's `workers` are threads: they count only when the file says that processes are meant. */
export function wantedWorkers(flag: number | 'auto' | undefined, general: GeneralConfig): number {
  if (flag === 'auto') return availableParallelism()
  if (flag !== undefined) return flag
  return general.workersMode === 'processes' ? general.workers : 1
}

/** As many as every limit can be shared by; fewer are said. */
export function workerCount(wanted: number, config: LoadedConfig, log: Log): number {
  const { name, value } = tightestLimit(config)
  const count = Math.max(1, Math.min(wanted, value, MAX_WORKERS))
  if (count < wanted)
    log.warn('fewer workers than asked for: each needs a share of every limit', {
      asked: wanted,
      workers: count,
      limit: `${name} = ${value}`,
    })
  return count
}

async function serveFleet(
  options: ServeWorkersOptions,
  config: LoadedConfig,
  { count, log }: { readonly count: number; readonly log: Log },
): Promise<number> {
  const { load, version, host, port, logLevel, logFormat, pidFile } = options
  const fleet = new WorkerFleet({
    count,
    config,
    loadAgain: (settings) => loadConfig({ ...load, ...(settings ? { settings } : {}) }),
    version,
    log,
    clock: systemClock,
    isTraced: options.trace !== undefined,
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
    ...(logLevel === undefined ? {} : { logLevel }),
    ...(logFormat === undefined ? {} : { logFormat }),
  })
  await fleet.start()
  const signals = listenToSignals(fleet, log)
  let outlets: Outlets | undefined
  try {
    outlets = await openOutlets({
      ...{ clock: systemClock, log, look: () => fleet.view() },
      config: () => fleet.config,
      announce: options.announce,
    })
    // Only now: a second process that finds the port in use must not touch the first one's file.
    if (pidFile !== undefined) writePidFile(pidFile)
  } catch (error) {
    await outlets?.close()
    fleet.shutdown(true)
    throw error
  }
  options.announce(`listening on ${fleet.host}:${fleet.port}`)
  const isDrained = await fleet.ended
  await outlets.close()
  signals.close()
  if (pidFile !== undefined) rmSync(pidFile, { force: true })
  return isDrained ? 0 : 1
}

function listenToSignals(fleet: WorkerFleet, log: Log): { close(): void } {
  const stop = (signal: NodeJS.Signals) => {
    log.info('signal', { signal })
    fleet.shutdown()
  }
  // Both log their own failure.
  const reload = () => void fleet.reload().catch(() => undefined)
  const restart = () =>
    void fleet
      .restart()
      .catch((error: Error) => log.error('restart stopped', { error: error.message }))
  const listeners = [
    ['SIGHUP', reload],
    ['SIGUSR2', restart],
    ['SIGINT', stop],
    ['SIGTERM', stop],
  ] as const
  for (const [signal, listener] of listeners) process.on(signal, listener)
  return {
    close() {
      for (const [signal, listener] of listeners) process.off(signal, listener)
    },
  }
}
