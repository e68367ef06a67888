/** What a move would do, for `reshard plan`. Reads only. */
import { bucketMoves } from './buckets/bucket-moves.js'
import { movableSidesOf } from './buckets/bucket-sides.js'
import type { MoveConfig } from './configured-side.js'
import { type Standing, tableLabel } from './move-table.js'
import { type Problem, preflight } from './preflight/preflight.js'

export interface MoveOutline {
  readonly from: string
  readonly to: string
  readonly source_shards: number
  readonly target_shards: number
  readonly format: 'binary' | 'text'
  readonly tables: readonly {
    readonly name: string
    readonly from: string
    readonly to: string
    /** Of source shard 0. */
    readonly estimated_rows: number
    readonly bytes: number
  }[]
  /** Rough: at 40 MB/s a source shard to copy and 60 MB/s to verify. */
  readonly estimate: {
    readonly bytes: number
    readonly bytes_per_target: number
    readonly copy_s: number
    readonly verify_s: number
    /** What the busiest source is likely to keep until the targets have caught up; null when its rate is not known. */
    readonly wal_bytes: number | null
  }
  /** Where shards are added to those that stay: the buckets that change theirs. Empty: everything moves. */
  readonly bucket_moves: readonly {
    readonly table: string
    readonly from: number
    readonly to: number
    readonly buckets: readonly number[]
    readonly of: number
    readonly estimated_rows: number
  }[]
  readonly problems: readonly Problem[]
  readonly ready: boolean
}

function inWords(place: Standing): string {
  if (place.kind === 'sharded') return `by ${place.keyColumn}`
  return place.kind === 'reference' ? 'on every shard' : `on shard ${place.shard}`
}

export async function outlineMove(
  config: MoveConfig,
  from: string,
  to: string,
  jobs = 2,
): Promise<MoveOutline> {
  const sides = movableSidesOf(config, from, to)
  const found = await preflight(sides.from, sides.to, { jobs })
  const { estimate } = found
  const shards = (place: Standing): number =>
    place.kind === 'sharded' ? found.plan.sourceCount : 1
  return {
    from,
    to,
    source_shards: (sides.from.whole ?? sides.from).shards.length,
    target_shards: (sides.to.whole ?? sides.to).shards.length,
    bucket_moves: bucketMoves(found.plan, sides).map((move) => ({
      ...{ table: move.table, from: move.from, to: move.to, buckets: move.buckets, of: move.of },
      estimated_rows: move.estimatedRows,
    })),
    format: found.binary ? 'binary' : 'text',
    tables: found.plan.tables.map((table) => ({
      name: tableLabel(table),
      from: inWords(table.from),
      to: inWords(table.to),
      estimated_rows: table.rowEstimate * shards(table.from),
      bytes: table.bytes * shards(table.from),
    })),
    estimate: {
      bytes: estimate.bytes,
      bytes_per_target: estimate.bytesPerTarget,
      copy_s: estimate.copySeconds,
      verify_s: estimate.verifySeconds,
      wal_bytes: estimate.walBytes ?? null,
    },
    problems: found.problems,
    ready: !found.problems.some((problem) => problem.severity === 'error'),
  }
}
