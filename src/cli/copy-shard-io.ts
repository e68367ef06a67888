/** What `copy-shard` asks of the configuration and shows of its work. Knows no engine: numbers and strings only. */
import { type Clock, systemClock } from '../base/clock.js'
import type { LoadedConfig } from '../config/loaded-config.js'
import { engineError } from '../errors/engine-error.js'
import { configOptions } from './flags.js'
import type { ProgressBar, ProgressBoard } from './progress.js'
import { formatBytes, formatCount, formatDuration, formatRate, renderTable } from './render.js'
import { shardUrls } from './shard-urls.js'

type ShardingConfig = NonNullable<ReturnType<LoadedConfig['sharding']['get']>>

interface TargetFlags {
  readonly config?: string | undefined
  readonly users?: string | undefined
  readonly 'database-url'?: string[] | undefined
  readonly database?: string | undefined
  readonly target?: readonly string[] | undefined
}

/** The shards by --target, or of --database in the configuration. */
export async function findShards(
  flags: TargetFlags,
): Promise<{ urls: readonly string[]; sharding?: ShardingConfig }> {
  if (flags.target !== undefined && flags.target.length > 0) return { urls: flags.target }
  const { loadConfig } = await import('../config/load-config.js')
  const config = loadConfig(configOptions(flags))
  const database =
    flags.database ?? (config.databases.length === 1 ? config.databases[0]?.name : undefined)
  if (database === undefined)
    throw engineError('USAGE', { message: 'give --database, or a --target for every shard' })
  const urls = shardUrls(config, database)
  const sharding = config.sharding.get(database)
  return sharding === undefined ? { urls } : { urls, sharding }
}

export interface LoadBar {
  readonly clock: Clock
  readonly signal: AbortSignal
  onStart(totalBytes: number | undefined): void
  onProgress(readBytes: number, rows: number): void
  note(line: string): void
  finish(): void
}

/** Between two looks at the bar: numbers are made into words for each. */
const SHOW_EVERY_MS = 100

/** Progress by the bytes read, with rows behind. */
export function watchLoad(
  board: ProgressBoard,
  label: string,
  signal: AbortSignal,
  note: (line: string) => void,
): LoadBar {
  let bar: ProgressBar | undefined
  let bytes = 0
  let rows = 0
  let shownMs = 0
  const show = (nowMs: number) => {
    shownMs = nowMs
    bar?.update(bytes, `${formatCount(rows)} rows`)
  }
  return {
    clock: systemClock,
    signal,
    onStart: (total) => {
      bar = board.bar({ label, unit: 'bytes', ...(total === undefined ? {} : { total }) })
    },
    onProgress: (moreBytes, moreRows) => {
      bytes += moreBytes
      rows += moreRows
      const nowMs = systemClock.monotonicMs()
      if (nowMs - shownMs >= SHOW_EVERY_MS) show(nowMs)
    },
    note,
    finish: () => {
      show(0)
      bar?.finish()
    },
  }
}

interface LoadNumbers {
  readonly read: number
  readonly written: number
  readonly rejected: number
  readonly shards: readonly {
    readonly shard: number
    readonly rows: number
    readonly bytes: number
  }[]
  readonly elapsedMs: number
  readonly isReference: boolean
  readonly isDryRun: boolean
  readonly rejectedTo?: string
  readonly inRejectFile?: number
}

/** Where rejected rows are: in the file, or nowhere because a trigger left them out. */
function whyRejected({ rejected, rejectedTo, inRejectFile = 0 }: LoadNumbers): string {
  if (rejectedTo === undefined) return 'left out by triggers of the servers'
  const silent = rejected - inRejectFile
  const others = silent > 0 ? `, ${formatCount(silent)} left out by triggers of the servers` : ''
  return `${formatCount(inRejectFile)} in ${rejectedTo}${others}`
}

/** The table at the end, which adds up. */
export function renderLoad(report: LoadNumbers): string {
  const { shards, read, written, rejected, elapsedMs } = report
  const total = shards.reduce((sum, { rows }) => sum + rows, 0)
  const share = (rows: number) => (total === 0 ? '0.0 %' : `${((rows * 100) / total).toFixed(1)} %`)
  const rows = shards.map(({ shard, rows, bytes }) => [
    String(shard),
    rows,
    formatBytes(bytes),
    share(rows),
  ])
  const table = renderTable(['shard', 'rows', 'bytes', 'share'], rows)
  const largest = Math.max(0, ...shards.map(({ rows }) => rows))
  const skew = total === 0 ? 1 : (largest * shards.length) / total
  const duration = `${formatDuration(elapsedMs)} (${formatRate((read * 1000) / Math.max(elapsedMs, 1), 'rows')})`
  if (report.isDryRun)
    return `${table}\nread ${formatCount(read)}, nothing written; skew ${skew.toFixed(2)} (largest shard over the mean), ${duration}\n`
  const everywhere = report.isReference ? ` (on each of ${shards.length} shards)` : ''
  const dropped = rejected > 0 ? ` (${whyRejected(report)})` : ''
  return `${table}\nread ${formatCount(read)} = written ${formatCount(written)}${everywhere} + rejected ${formatCount(rejected)}${dropped}, ${duration}\n`
}
