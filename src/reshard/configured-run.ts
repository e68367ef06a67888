/** A move started from a configuration: sides, console and file put together. */
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { engineError } from '../errors/engine-error.js'
import { consoleOf, type MoveConfig, sideOf } from './configured-side.js'
import { ConsoleGate } from './cutover/console-gate.js'
import { configSwitch } from './cutover/switch-config.js'
import { noGate } from './cutover/traffic-gate.js'
import { type RunListener, type RunOptions, type RunReport, runReshard } from './reshard.js'

export interface RunRequest {
  readonly from: string
  readonly to: string
  /** File that the cutover rewrites. */
  readonly configPath: string
  readonly yes: boolean
  readonly proxyUrl: string | undefined
  /** False: no proxy serves this configuration. */
  readonly proxy: boolean
  readonly stopAfter: RunOptions['stopAfter'] | undefined
  readonly jobs: number
  readonly budgetMs: number
  readonly verifyHoldMs: number
}

export interface RunSurroundings {
  readonly clock: Clock
  readonly log: Log
  readonly listener: RunListener
  readonly signal: AbortSignal
}

/** @throws RESHARD_NOT_CONFIRMED, and what `runReshard` throws */
export async function runConfigured(
  config: MoveConfig,
  request: RunRequest,
  around: RunSurroundings,
): Promise<RunReport> {
  const { from, to, configPath } = request
  if (!request.yes) throw engineError('RESHARD_NOT_CONFIRMED', { from, to })
  const gate = request.proxy
    ? new ConsoleGate(consoleOf(config, request.proxyUrl), around.clock)
    : noGate
  return runReshard({
    ...around,
    source: sideOf(config, from),
    target: sideOf(config, to),
    gate,
    config: configSwitch(configPath, from, to),
    jobs: request.jobs,
    budgetMs: request.budgetMs,
    verifyHoldMs: request.verifyHoldMs,
    ...(request.stopAfter === undefined ? {} : { stopAfter: request.stopAfter }),
  })
}
