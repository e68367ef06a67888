/** A line for each statement that took long, without its literals, with the trace that its comment names. */
import type { Log } from '../../base/log.js'
import type { GeneralConfig } from '../../config/loaded-config.js'
import { REQUEST_CLASSES } from '../../metrics/request-times.js'
import type { SlowLog } from '../../session/environment.js'

export interface SlowLogSources {
  readonly log: Log
  /** 0 ≤ x < 1. */
  readonly random: () => number
  readonly general: GeneralConfig
}

/** What a client's slow requests are told to; undefined when nothing is to be told. */
export function slowLogFor(
  { log, random, general }: SlowLogSources,
  client: { readonly user: string; readonly database: string },
): SlowLog | undefined {
  const { logMinDurationStatementMs: minMs, logStatementSampleRate: rate } = general
  if (minMs === undefined || rate === 0) return undefined
  return {
    minMs,
    report: (running, elapsedMs) => {
      if (rate < 1 && random() >= rate) return
      const text = running.only?.shape?.()
      const trace = running.only?.trace?.()
      log.info('slow statement', {
        ...client,
        durationMs: Math.round(elapsedMs * 1000) / 1000,
        class: REQUEST_CLASSES[running.requestClass],
        ...(running.shard < 0 ? {} : { shard: running.shard }),
        ...(running.failed ? { failed: true } : {}),
        ...(text === undefined ? {} : { statement: shortened(text, general.logQuerySampleLength) }),
        ...(trace === undefined ? {} : trace),
      })
    },
  }
}

const shortened = (text: string, length: number): string =>
  text.length <= length ? text : `${text.slice(0, length)}…`
