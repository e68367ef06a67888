/** What stands in the way of a move between sides that have shards in common. */

import { listSlots } from '../../replication/slot.js'
import type { HashPlacement } from '../../sharding/sharded-table.js'
import {
  type MovePlan,
  type MoveTable,
  planMove,
  type Standing,
  tableLabel,
} from '../move-table.js'
import { error, type Problem } from '../preflight/problem.js'
import type { SourceTable } from '../preflight/source-table.js'
import { onEachShard, placeOf, type ReshardSide } from '../side.js'

/** Why there is no stream back: its rows would meet those that stayed. */
export const NO_WAY_BACK =
  'what has moved is deleted from the old shards when the new ones take over'

/** The shards of both sides. */
export function checkSharedSides(source: ReshardSide, target: ReshardSide): Problem[] {
  const { whole } = target
  if (!whole) return []
  const here = source.whole ?? source
  const common = Math.min(here.shards.length, whole.shards.length)
  const stray = here.shards.slice(0, common).findIndex((shard, number) => {
    const twin = whole.shards[number]
    return !twin || placeOf(twin) !== placeOf(shard)
  })
  if (stray < 0) return []
  const mend = target.isStaged
    ? `let the last shards of "${source.name}" go: give those that are to leave the highest numbers first, in its shards and bucket_map alike, which moves nothing`
    : `number the shards of "${target.name}" as those of "${source.name}", the new ones behind`
  return [
    error(
      placeOf(here.shards[stray] as ReshardSide['shards'][number]),
      `is shard ${stray} of "${source.name}" and ${isIn(here.shards[stray], whole) ? 'another one' : 'none'} of "${target.name}"`,
      mend,
    ),
  ]
}

const isIn = (shard: ReshardSide['shards'][number] | undefined, side: ReshardSide): boolean =>
  shard !== undefined && side.shards.some((one) => placeOf(one) === placeOf(shard))

/** The tables: which of them can move by buckets. Users of shards that lose rows and stay must be able to keep triggers from firing. */
export function checkBuckets(
  source: ReshardSide,
  target: ReshardSide,
  first: { readonly tables: readonly SourceTable[] },
  sources: readonly { readonly user: string; readonly mayUseReplicaRole: boolean }[],
): Problem[] {
  const { whole } = target
  if (!whole) return []
  const plan = planMove(source.whole ?? source, whole, first.tables)
  const found = plan.tables.flatMap((table) => checkTable(table, plan, target.isStaged === true))
  const isStill = !plan.tables.some((table) => isMoved(table, plan))
  if (found.length === 0 && isStill) {
    const mend = `write a bucket_map for "${target.name}": pgshard config buckets proposes one`
    found.push(error(`database "${target.name}"`, 'no bucket changes its shard', mend))
  }
  // Where shards leave it is asked of the targets, as of any that have their tables.
  if (target.isStaged) return found
  const powerless = sources.find((one) => !one.mayUseReplicaRole)
  if (powerless) {
    const what = `user ${powerless.user} may not set session_replication_role, without which triggers would act on rows that leave`
    const mend = `GRANT SET ON PARAMETER session_replication_role TO "${powerless.user}", as superuser`
    found.push(error(`database "${source.name}"`, what, mend))
  }
  return found
}

/** A stream back of an earlier move would carry the deletes of this one, and nothing of the new shards. */
export async function checkEarlier(source: ReshardSide, target: ReshardSide): Promise<Problem[]> {
  if (!target.whole) return []
  const slots = (
    await onEachShard(source.whole ?? source, (client) => listSlots(client, 'pgshard_'))
  ).flat()
  if (slots.length === 0) return []
  const what = `an earlier move still has its slots there: ${slots.map(({ name }) => name).join(', ')}`
  const mend = 'give its way back up with pgshard reshard cleanup'
  return [error(`database "${source.name}"`, what, mend)]
}

const hashOf = (place: Standing): HashPlacement | undefined => {
  if (place.kind !== 'sharded') return undefined
  const { placement } = place.placer.table
  return placement.kind === 'hash' && placement.hasher === 'postgres' ? placement : undefined
}

function isMoved({ from, to }: MoveTable, { sourceCount, targetCount }: MovePlan): boolean {
  const [old, next] = [hashOf(from)?.bucketMap ?? [], hashOf(to)?.bucketMap ?? []]
  return sourceCount > targetCount
    ? old.some((shard) => shard >= targetCount)
    : old.length > 0 && next.some((shard) => shard >= sourceCount)
}

function checkTable(table: MoveTable, plan: MovePlan, isStaged: boolean): Problem[] {
  const where = tableLabel(table)
  const { from, to } = table
  if (from.kind === 'reference' && to.kind === 'reference') return []
  const old = hashOf(from)
  const next = hashOf(to)
  if (from.kind !== 'sharded' || to.kind !== 'sharded' || !old || !next) {
    return [
      error(
        where,
        'is not placed by buckets of a hash of PostgreSQL on both sides, nor on every shard',
        'only such tables move by buckets: give the target servers of its own, and move everything',
      ),
    ]
  }
  const { keyType } = from.placer.table
  if (from.keyColumn !== to.keyColumn || keyType !== to.placer.table.keyType) {
    const mend = `say the same column and data_type in both [[sharded_tables]]`
    return [error(where, 'has another sharding key on the target', mend)]
  }
  if (old.buckets !== next.buckets) {
    const what = `has ${old.buckets} buckets now and would have ${next.buckets}`
    const mend = `first raise the buckets where they are, which moves nothing: pgshard config buckets --to ${next.buckets}`
    return [error(where, what, mend)]
  }
  return checkBetween(where, old.bucketMap, next.bucketMap, plan, isStaged)
}

/** Shards that stay cannot be on both sides of a move: each has one row that says which side it is of. */
function checkBetween(
  where: string,
  old: readonly number[],
  next: readonly number[],
  { sourceCount, targetCount }: MovePlan,
  isStaged: boolean,
): Problem[] {
  const stray = old.findIndex((shard, bucket) => {
    const then = next[bucket] as number
    return then !== shard && (isStaged ? shard < targetCount : then < sourceCount)
  })
  if (stray < 0) return []
  const pair = `bucket ${stray} would go from shard ${old[stray]} to shard ${next[stray]}`
  return [
    isStaged
      ? error(
          where,
          `${pair}, and both stay`,
          'let buckets of the shards that leave go only: pgshard config buckets proposes such a map',
        )
      : error(
          where,
          `${pair}, which is there already`,
          'let buckets go to added shards only: pgshard config buckets proposes such a map',
        ),
  ]
}
