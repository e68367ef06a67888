/** Which buckets change their shard in a move between sides that have shards in common. Pure. */
import type { HashPlacement } from '../../sharding/sharded-table.js'
import { type MovePlan, type MoveTable, movingBuckets, tableLabel } from '../move-table.js'
import { placeOf, type ReshardSide } from '../side.js'
import type { MoveSides } from './bucket-sides.js'

export interface BucketMove {
  readonly table: string
  /** Numbers of shards, which are the same on both sides. */
  readonly from: number
  readonly to: number
  readonly buckets: readonly number[]
  /** Of how many. */
  readonly of: number
  readonly estimatedRows: number
}

/** Empty where the sides share no shard. */
export function bucketMoves(plan: MovePlan, { from: source, to: target }: MoveSides): BucketMove[] {
  const { whole } = target
  if (!whole) return []
  const numbersIn = (side: ReshardSide, all: ReshardSide): number[] =>
    side.shards.map((shard) => all.shards.findIndex((one) => placeOf(one) === placeOf(shard)))
  const numbers = {
    from: numbersIn(source, source.whole ?? source),
    to: numbersIn(target, whole),
  }
  return plan.tables.flatMap((table) => movesOf(table, plan.targetCount, numbers))
}

function movesOf(
  table: MoveTable,
  targetCount: number,
  numbers: { readonly from: readonly number[]; readonly to: readonly number[] },
): BucketMove[] {
  const { from, to } = table
  if (from.kind !== 'sharded' || to.kind !== 'sharded') return []
  const old = from.placer.table.placement as HashPlacement
  const next = to.placer.table.placement as HashPlacement
  const moving = movingBuckets(to, targetCount)
  const found = new Map<string, { from: number; to: number; buckets: number[] }>()
  for (const bucket of moving) {
    const pair = {
      from: numbers.from[old.bucketMap[bucket] as number] as number,
      to: numbers.to[next.bucketMap[bucket] as number] as number,
    }
    const key = `${pair.from} ${pair.to}`
    const known = found.get(key) ?? { ...pair, buckets: [] }
    known.buckets.push(bucket)
    found.set(key, known)
  }
  const rows = (table.rowEstimate * table.sourceShards.length) / Math.max(1, moving.length)
  return [...found.values()].map((move) => ({
    table: tableLabel(table),
    ...move,
    of: next.buckets,
    estimatedRows: Math.round(rows * move.buckets.length),
  }))
}
