/** The bounds that a move keeps towards its sources: their names, how they are written, what holds when nothing is said. Pure. */
import { engineError } from '../../errors/engine-error.js'

export type WalAction = 'pause' | 'abort'

export interface GuardLimits {
  /** Bytes a second that the copy may read of all sources together; 0: no bound. */
  readonly maxRate: number
  /** Bytes of WAL that our slots may make a source keep; 0: no bound. */
  readonly maxWalKept: number
  /** What happens at `maxWalKept`: the copy waits, or the run is given up and the source freed. */
  readonly walAction: WalAction
  /** The copy waits while a source answers slower than this; 0: no bound. */
  readonly maxSourceLatencyMs: number
  /** The copy waits while a standby of a source is further behind than this; 0: no bound. */
  readonly maxReplicaLagMs: number
}

export const DEFAULT_LIMITS: GuardLimits = {
  maxRate: 0,
  maxWalKept: 64 * 2 ** 30,
  walAction: 'abort',
  maxSourceLatencyMs: 0,
  maxReplicaLagMs: 0,
}

/** Names of the settings, as they are written in the journal, on the console and (with dashes) as flags. */
const settingNames = [
  'max_rate',
  'max_wal_kept',
  'wal_action',
  'max_source_latency',
  'max_replica_lag',
] as const
export type SettingName = (typeof settingNames)[number]

const sizes: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kb: 2 ** 10,
  mb: 2 ** 20,
  gb: 2 ** 30,
  tb: 2 ** 40,
}
const spans: Readonly<Record<string, number>> = { '': 1, ms: 1, s: 1000, min: 60_000 }

function quantity(
  name: string,
  text: string,
  units: Readonly<Record<string, number>>,
  example: string,
): number {
  if (text.toLowerCase() === 'off') return 0
  const [, number, unit] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*$/i.exec(text) ?? []
  const factor = units[(unit ?? '').toLowerCase()]
  if (number === undefined || factor === undefined) {
    throw engineError('RESHARD_SETTING', { name, value: text, wanted: `${example} or off` })
  }
  return Math.round(Number(number) * factor)
}

/** Reads one setting. @throws RESHARD_SETTING */
export function readSetting(name: string, text: string): Partial<GuardLimits> {
  switch (name) {
    case 'max_rate':
      return { maxRate: quantity(name, text, sizes, 'bytes a second such as 20MB') }
    case 'max_wal_kept':
      return { maxWalKept: quantity(name, text, sizes, 'a size such as 64GB') }
    case 'max_source_latency':
      return { maxSourceLatencyMs: quantity(name, text, spans, 'a time such as 200ms') }
    case 'max_replica_lag':
      return { maxReplicaLagMs: quantity(name, text, spans, 'a time such as 10s') }
    case 'wal_action':
      if (text === 'pause' || text === 'abort') return { walAction: text }
      throw engineError('RESHARD_SETTING', { name, value: text, wanted: 'pause or abort' })
    default:
      throw engineError('RESHARD_SETTING', {
        name,
        value: text,
        wanted: `one of ${settingNames.join(', ')}`,
      })
  }
}

/** Several settings over the defaults. @throws RESHARD_SETTING */
export function readLimits(
  settings: Readonly<Partial<Record<SettingName, string | undefined>>>,
): GuardLimits {
  let limits = DEFAULT_LIMITS
  for (const [name, text] of Object.entries(settings)) {
    if (text !== undefined) limits = { ...limits, ...readSetting(name, text) }
  }
  return limits
}
