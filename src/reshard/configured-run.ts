/** A move started or taken up from a configuration: sides, console and file put together. */
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { engineError, toEngineError } from '../errors/engine-error.js'
import { movableSidesOf, sidesOf } from './buckets/bucket-sides.js'
import { gateOf } from './configured-gate.js'
import type { MoveConfig } from './configured-side.js'
import { Pace } from './copy/pace.js'
import { configSwitch } from './cutover/switch-config.js'
import { faultOf } from './fault.js'
import { readLimits, type SettingName } from './guards/guard-limits.js'
import { writeReport } from './report/write-report.js'
import {
  continueReshard,
  type RunListener,
  type RunOptions,
  type RunReport,
  resumeReshard,
  runReshard,
} from './reshard.js'

/** `run` begins, `resume` goes on, `continue` does whichever it takes to come to its step. */
const works = { run: runReshard, resume: resumeReshard, continue: continueReshard }

export interface RunRequest {
  readonly mode: keyof typeof works
  readonly from: string
  readonly to: string
  /** File that the cutover rewrites. */
  readonly configPath: string
  /** File that gets a report, also of a run that failed. */
  readonly htmlPath: string | undefined
  readonly yes: boolean
  /** Consoles; empty: as the configuration says. */
  readonly proxyUrls: readonly string[]
  /** False: no proxy serves this configuration. */
  readonly proxy: boolean
  readonly stopAfter: RunOptions['stopAfter'] | undefined
  readonly keepFollowing: boolean
  readonly jobs: number
  /** Bytes a second that the copy reads at most; 0: no bound. */
  readonly maxRate: number
  /** Texts of the limits of `guards/`; what is undefined has its default. */
  readonly limits: Readonly<Partial<Record<SettingName, string | undefined>>>
  readonly partBytes: number | undefined
  readonly budgetMs: number
  readonly verifyHoldMs: number
  readonly endPinned: boolean
  readonly wayBack?: boolean | undefined
}

export interface RunSurroundings {
  readonly clock: Clock
  readonly log: Log
  readonly listener: RunListener
  readonly signal: AbortSignal
  readonly env: Readonly<Record<string, string | undefined>>
}

/** @throws RESHARD_NOT_CONFIRMED, and what `runReshard` throws */
export async function runConfigured(
  config: MoveConfig,
  request: RunRequest,
  around: RunSurroundings,
): Promise<RunReport> {
  const { from, to } = request
  if (!request.yes) throw engineError('RESHARD_NOT_CONFIRMED', { from, to })
  try {
    return await walkConfigured(config, request, around)
  } finally {
    if (request.htmlPath !== undefined) await report(config, request, around.log)
  }
}

/** Never hides why the run failed. */
async function report(config: MoveConfig, request: RunRequest, log: Log): Promise<void> {
  const sides = sidesOf(config, request.from, request.to)
  await writeReport(request.htmlPath ?? '', sides.from, sides.to).catch((error: unknown) => {
    log.warn('no report was written', { reason: toEngineError(error).message })
  })
}

async function walkConfigured(
  config: MoveConfig,
  request: RunRequest,
  around: RunSurroundings,
): Promise<RunReport> {
  const { from, to, configPath, mode } = request
  const { clock, log, listener, signal, env } = around
  const sides = movableSidesOf(config, from, to)
  const isStrict = sides.to.whole !== undefined || sides.from.whole !== undefined
  const gate = gateOf(config, { ...request, isStrict }, clock)
  const atPoint = faultOf(env, () => void process.kill(process.pid, 'SIGKILL'))
  return works[mode]({
    clock,
    log,
    listener,
    signal,
    source: sides.from,
    target: sides.to,
    gate,
    config: configSwitch(configPath, from, to),
    jobs: request.jobs,
    pace: new Pace(clock, request.maxRate),
    limits: { ...readLimits(request.limits), maxRate: request.maxRate },
    budgetMs: request.budgetMs,
    verifyHoldMs: request.verifyHoldMs,
    endPinned: request.endPinned,
    dumpProgram: config.replication.pgDumpPath,
    ...(request.wayBack === undefined ? {} : { wayBack: request.wayBack }),
    keepFollowing: request.keepFollowing,
    ...(atPoint ? { atPoint } : {}),
    ...(request.partBytes === undefined ? {} : { partBytes: request.partBytes }),
    ...(request.stopAfter === undefined ? {} : { stopAfter: request.stopAfter }),
  })
}
