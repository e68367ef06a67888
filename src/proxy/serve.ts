/**
 * `pgshard serve` as a process: signals, pid file, the one line that says where it listens. Resolves with the exit code:
 * 0 drained, 1 forced.
 */
import { rmSync, writeFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { systemClock } from '../base/clock.js'
import { dedupLog } from '../base/dedup-log.js'
import { type Log, type LogLevel, openLog } from '../base/log.js'
import { loadConfig } from '../config/load-config.js'
import type { LoadedConfig, LoadOptions } from '../config/loaded-config.js'
import { engineError } from '../errors/engine-error.js'
import { watchCore } from './core-watch.js'
import { type Outlets, openOutlets } from './observe/open-outlets.js'
import type { ServingProxy } from './proxy.js'
import { type ServingOptions, startServing } from './start-serving.js'

export interface ServeOptions {
  readonly load: LoadOptions
  readonly version: string
  readonly host?: string
  readonly port?: number
  readonly pidFile?: string
  readonly logLevel?: LogLevel
  readonly logFormat?: 'text' | 'json'
  /** Writes client messages in libpq's trace form. */
  readonly trace?: (line: string) => void
  /** The line `listening on HOST:PORT`. */
  readonly announce: (line: string) => void
  readonly onTwoPhaseStep?: NonNullable<ServingOptions['onTwoPhaseStep']>
}

/** @throws CONFIG_INVALID, NET_LISTEN_FAILED, PROXY_* */
export async function serve(
  options: ServeOptions,
  config = loadConfig(options.load),
): Promise<number> {
  const { load, version, host, port, trace, onTwoPhaseStep } = options
  const log = openProxyLog(options, config)
  const inForce = { newest: config }
  const proxy = await startServing({
    config: inForce,
    loadAgain: (settings) => loadConfig({ ...load, ...(settings ? { settings } : {}) }),
    version,
    log,
    ...(host === undefined ? {} : { host }),
    ...(port === undefined ? {} : { port }),
    ...(trace === undefined ? {} : { trace }),
    ...(onTwoPhaseStep === undefined ? {} : { onTwoPhaseStep }),
  })
  const signals = listenToSignals(proxy, log)
  let outlets: Outlets | undefined
  try {
    outlets = await openOutlets({
      ...{ clock: systemClock, log, look: () => proxy.view },
      config: () => inForce.newest,
      announce: options.announce,
    })
    // Only now: a second process that finds the port in use must not touch the first one's file.
    if (options.pidFile !== undefined) writePidFile(options.pidFile)
  } catch (error) {
    await outlets?.close()
    proxy.shutdown(true)
    throw error
  }
  options.announce(`listening on ${proxy.host}:${proxy.port}`)
  const unwatch = watchCore({
    clock: systemClock,
    log,
    cpuMs: () => {
      const { user, system } = process.cpuUsage()
      return (user + system) / 1000
    },
    cores: availableParallelism(),
  })
  const isDrained = await proxy.ended
  unwatch()
  await outlets.close()
  signals.close()
  if (options.pidFile !== undefined) rmSync(options.pidFile, { force: true })
  return isDrained ? 0 : 1
}

export function openProxyLog(
  options: Pick<ServeOptions, 'logFormat' | 'logLevel'>,
  { general }: LoadedConfig,
): Log {
  const format = options.logFormat ?? (general.logFormat === 'text' ? 'text' : 'json')
  const level = options.logLevel ?? general.logLevel
  const log = openLog({
    level: level === 'off' ? 'silent' : (level as LogLevel),
    json: format === 'json',
  })
  const { logDedupWindowMs: windowMs, logDedupThreshold: threshold } = general
  return dedupLog(log, { clock: systemClock, windowMs, threshold })
}

/** @throws PROXY_PID_FILE */
export function writePidFile(path: string): void {
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
  const onRestart = () => log.warn('SIGUSR2 restarts workers; this proxy is one process')
  process.on('SIGHUP', onReload)
  process.on('SIGUSR2', onRestart)
  process.on('SIGINT', onStop)
  process.on('SIGTERM', onStop)
  return {
    close() {
      process.off('SIGHUP', onReload)
      process.off('SIGUSR2', onRestart)
      process.off('SIGINT', onStop)
      process.off('SIGTERM', onStop)
    },
  }
}
