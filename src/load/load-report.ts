/** What a load did, in numbers that add up: read = written + rejected. Pure. */

export interface ShardLoad {
  readonly shard: number
  readonly rows: number
  readonly bytes: number
}

export interface LoadReport {
  readonly read: number
  /** Of a reference table each row counts once, though every shard has it. */
  readonly written: number
  readonly rejected: number
  readonly shards: readonly ShardLoad[]
  readonly elapsedMs: number
  readonly isReference: boolean
  readonly isDryRun: boolean
  /** The file of rejected rows, and how many it has. */
  readonly rejectedTo?: string
  readonly inRejectFile?: number
}

/** The largest shard's rows over the mean: 1 is even. */
export function skewOf(shards: readonly ShardLoad[]): number {
  const total = shards.reduce((sum, { rows }) => sum + rows, 0)
  if (total === 0) return 1
  return (Math.max(...shards.map(({ rows }) => rows)) * shards.length) / total
}

/** The object of `--json`. */
export function loadJson(report: LoadReport): object {
  return {
    read: report.read,
    written: report.written,
    rejected: report.rejected,
    shards: report.shards.map(({ shard, rows, bytes }) => ({ shard, rows, bytes })),
    elapsed_ms: Math.round(report.elapsedMs),
    ...(report.rejectedTo === undefined ? {} : { reject_file: report.rejectedTo }),
    ...(report.isDryRun
      ? { dry_run: true, skew: Math.round(skewOf(report.shards) * 1000) / 1000 }
      : {}),
  }
}
