/** Reference tables are read from one source: the copies on the others must be equal to it. Reads only. */
import type { Clock } from '../../base/clock.js'
import { type MovePlan, type MoveTable, tableLabel } from '../move-table.js'
import { onEachShard, type ReshardSide } from '../side.js'
import {
  type BucketSums,
  readBucketSums,
  unequalBuckets,
  verifySettings,
} from '../verify/row-hash.js'
import { error, type Problem } from './problem.js'

/** A copy that is written just now is read again: only buckets that differ every time count. */
const LOOKS = 3
const BETWEEN_MS = 500

export async function checkReferenceTables(
  plan: MovePlan,
  source: ReshardSide,
  clock: Clock,
): Promise<Problem[]> {
  if (plan.sourceCount === 1) return []
  let suspects = plan.tables
    .filter((table) => table.from.kind === 'reference')
    .flatMap((table) =>
      source.shards
        .slice(1)
        .map((_, i) => ({ table, shard: i + 1, buckets: undefined as number[] | undefined })),
    )
  for (let look = 1; look <= LOOKS && suspects.length > 0; look++) {
    if (look > 1) await clock.sleep(BETWEEN_MS)
    const sums = await readSums(source, [...new Set(suspects.map(({ table }) => table))])
    suspects = suspects.flatMap(({ table, shard, buckets }) => {
      const of = (one: number): BucketSums => sums[one]?.get(table) ?? new Map()
      const unequal = unequalBuckets(of(0), of(shard))
      const still = buckets ? buckets.filter((bucket) => unequal.includes(bucket)) : unequal
      return still.length === 0 ? [] : [{ table, shard, buckets: still }]
    })
  }
  return suspects.map(({ table, shard }) =>
    error(
      tableLabel(table),
      `reference table differs between source shards 0 and ${shard}`,
      `make both equal before the move: compare COPY (SELECT * FROM ${table.sqlName} ORDER BY 1) TO STDOUT of the two shards`,
    ),
  )
}

function readSums(
  source: ReshardSide,
  tables: readonly MoveTable[],
): Promise<Map<MoveTable, BucketSums>[]> {
  return onEachShard(
    source,
    async (client) => {
      const sums = new Map<MoveTable, BucketSums>()
      for (const table of tables) sums.set(table, await readBucketSums(client, table))
      return sums
    },
    verifySettings,
  )
}
