/**
 * The sides of a move between two databases that share shards: what one of them has alone stands for it. Keys that go
 * to none of those are placed on a shard number behind them, which nobody reads or writes. Pure.
 */
import { engineError } from '../../errors/engine-error.js'
import type { Placement, ShardedTable } from '../../sharding/sharded-table.js'
import { type MoveConfig, sideOf } from '../configured-side.js'
import { placeOf, type ReshardSide } from '../side.js'

export interface MoveSides {
  readonly from: ReshardSide
  readonly to: ReshardSide
}

/** The two sides as a configuration has them. @throws RESHARD_UNKNOWN_DATABASE, RESHARD_NO_USER, RESHARD_SHARED_BY */
export function sidesOf(config: MoveConfig, from: string, to: string): MoveSides {
  const sides = narrowed({ from: sideOf(config, from), to: sideOf(config, to) })
  if (!sides.to.whole) return sides
  const whole = sides.from.whole ?? sides.to.whole
  // Its own map would name shards that lack rows by then.
  const other = config.databases.find(({ name, shards }) => {
    if (name === from || name === to) return false
    return shards.some(({ hosts }) =>
      hosts.some((host) => has(whole, placeOf({ ...host, user: '' }))),
    )
  })
  if (other) throw engineError('RESHARD_SHARED_BY', { name: other.name, from, to })
  return sides
}

/** As `sidesOf`, for a move that begins or goes on. @throws RESHARD_BUCKET_REPLICAS */
export function movableSidesOf(config: MoveConfig, from: string, to: string): MoveSides {
  const sides = sidesOf(config, from, to)
  if (!sides.to.whole) return sides
  // What is deleted on a primary stands on its standby for as long as that one lags.
  const many = config.databases.find(({ name, shards }) => {
    return (name === from || name === to) && shards.some(({ hosts }) => hosts.length > 1)
  })
  if (many) throw engineError('RESHARD_BUCKET_REPLICAS', { name: many.name })
  return sides
}

/**
 * One side has all shards of the other and some more: those stand for it. Where they are the old side's the new one is
 * staged: which buckets come to it is told by the old side's map (`planMove`). Else both stay as they are.
 */
export function narrowed({ from, to }: MoveSides): MoveSides {
  const isShared = from.shards.some((shard) => has(to, placeOf(shard)))
  if (!isShared) return { from, to }
  const here = lacking(from, to)
  const there = lacking(to, from)
  if (here.length === 0 && there.length > 0) return { from, to: only(to, there) }
  if (there.length === 0 && here.length > 0) {
    return { from: only(from, here), to: { ...to, whole: to, isStaged: true } }
  }
  return { from, to }
}

const has = (side: ReshardSide, place: string): boolean =>
  side.shards.some((shard) => placeOf(shard) === place)

/** Numbers of the shards of `side` that `other` has not. */
function lacking(side: ReshardSide, other: ReshardSide): number[] {
  return [...side.shards.keys()].filter((shard) => {
    return !has(other, placeOf(side.shards[shard] as ReshardSide['shards'][number]))
  })
}

function only(side: ReshardSide, shards: readonly number[]): ReshardSide {
  const numbers = new Map(shards.map((shard, i) => [shard, i]))
  const renumber = (shard: number): number => numbers.get(shard) ?? shards.length
  const tables = side.sharding.tables.map(
    (table): ShardedTable => ({ ...table, placement: renumbered(table.placement, renumber) }),
  )
  return {
    ...side,
    shards: shards.map((shard) => side.shards[shard] as ReshardSide['shards'][number]),
    sharding: { ...side.sharding, tables },
    whole: side,
  }
}

/** Other ways to place are refused by preflight. */
function renumbered(placement: Placement, renumber: (shard: number) => number): Placement {
  if (placement.kind !== 'hash') return placement
  return { ...placement, bucketMap: placement.bucketMap.map(renumber) }
}
