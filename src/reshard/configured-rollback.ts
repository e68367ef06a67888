/** A rollback started from a configuration: sides, consoles and file put together. */
import type { Clock } from '../base/clock.js'
import type { Log } from '../base/log.js'
import { engineError } from '../errors/engine-error.js'
import { sidesOf } from './buckets/bucket-sides.js'
import { type GateRequest, gateOf } from './configured-gate.js'
import type { MoveConfig } from './configured-side.js'
import { configSwitch } from './cutover/switch-config.js'
import { faultOf } from './fault.js'
import { followBack, type RollbackReport, rollbackRun } from './rollback.js'

interface RollbackRequest extends GateRequest {
  readonly to: string
  /** File that the switch rewrites. */
  readonly configPath: string
  readonly yes: boolean
  readonly budgetMs: number
  readonly verifyHoldMs: number
  readonly endPinned: boolean
}

interface Surroundings {
  readonly clock: Clock
  readonly log: Log
  readonly listener: { step(text: string): void }
  readonly env: Readonly<Record<string, string | undefined>>
}

/** @throws RESHARD_NOT_CONFIRMED, and what `rollbackRun` throws */
export async function rollbackConfigured(
  config: MoveConfig,
  request: RollbackRequest,
  around: Surroundings,
): Promise<RollbackReport> {
  const { from, to, configPath, yes, budgetMs, verifyHoldMs, endPinned } = request
  if (!yes) throw engineError('RESHARD_NOT_CONFIRMED', { from, to })
  const { clock, log, listener, env } = around
  const atPoint = faultOf(env, () => void process.kill(process.pid, 'SIGKILL'))
  return rollbackRun({
    ...sidesOf(config, from, to),
    gate: gateOf(config, request, clock),
    config: configSwitch(configPath, from, to),
    ...{ clock, log, listener, budgetMs, verifyHoldMs, endPinned },
    ...(atPoint ? { atPoint } : {}),
  })
}

/** The old side kept up to date after a cutover, until interrupted. */
export async function followBackConfigured(
  config: MoveConfig,
  names: { readonly from: string; readonly to: string },
  around: {
    readonly clock: Clock
    readonly listener: { step(text: string): void; followed?(changes: number): void }
    readonly signal: AbortSignal
  },
): Promise<{ run: string; changesApplied: number }> {
  return followBack({ ...sidesOf(config, names.from, names.to), ...around })
}
