/** Flags of --log and its kin → what is written, refused as pgbench refuses them. */
import { engineError } from '../errors/engine-error.js'
import type { LogPlan } from './run-plan.js'

export interface LogFlags {
  readonly log: boolean
  readonly 'log-prefix'?: string | undefined
  readonly 'sampling-rate'?: string | undefined
  readonly 'aggregate-interval'?: number | undefined
  /** Of the run, s. */
  readonly time?: number | undefined
}

const usage = (message: string) => engineError('BENCH_USAGE', { message })

function checkInterval(intervalS: number, timeS: number | undefined): void {
  if (timeS === undefined) return
  if (intervalS > timeS)
    throw usage(
      `number of seconds for aggregation (${intervalS}) must not be higher than test duration (${timeS})`,
    )
  if (timeS % intervalS !== 0)
    throw usage(`duration (${timeS}) must be a multiple of aggregation interval (${intervalS})`)
}

function samplingOf(text: string): number {
  const rate = Number(text)
  if (rate > 0 && rate <= 1) return rate
  throw usage(`invalid sampling rate: "${text}": a part between 0 and 1`)
}

/** @throws BENCH_USAGE */
export function logOf(flags: LogFlags): LogPlan | undefined {
  const { 'sampling-rate': sampling, 'aggregate-interval': intervalS, 'log-prefix': prefix } = flags
  if (!flags.log) {
    const given = Object.entries({
      '--sampling-rate': sampling,
      '--aggregate-interval': intervalS,
      '--log-prefix': prefix,
    }).find(([, value]) => value !== undefined)
    if (given) throw usage(`${given[0]} is allowed only when logging transactions (-l)`)
    return undefined
  }
  if (sampling !== undefined && intervalS !== undefined)
    throw usage(
      'log sampling (--sampling-rate) and aggregation (--aggregate-interval) cannot be used at the same time',
    )
  if (intervalS !== undefined) checkInterval(intervalS, flags.time)
  return {
    prefix: prefix ?? 'pgbench_log',
    processId: process.pid,
    ...(sampling === undefined ? {} : { samplingRate: samplingOf(sampling) }),
    ...(intervalS === undefined ? {} : { aggregateMs: intervalS * 1000 }),
  }
}
