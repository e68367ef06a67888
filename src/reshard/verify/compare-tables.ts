/**
 * Sources against targets by content, on connections whose snapshots are taken: sums per bucket, keys where they
 * differ, and every row of the targets on the shard that its key says.
 */
import { makeCopyOptions } from '../../copy/copy-options.js'
import { makeRowRouter } from '../../copy/row-router.js'
import { copyOut } from '../../pg/copy-out.js'
import type { HostClient } from '../../pg/host-client.js'
import { type MovePlan, type MoveTable, standingShards, tableLabel } from '../move-table.js'
import { quoteName } from '../sql-names.js'
import {
  addSums,
  type BucketSums,
  readBucketRows,
  readBucketSums,
  rowCount,
  unequalBuckets,
} from './row-hash.js'

/** Differing buckets that are looked into, and keys that are named, per table. */
const MAX_BUCKETS = 32
const MAX_KEYS = 20

export interface KeyDifference {
  /** The replica identity as PostgreSQL prints a row: (1,abc). */
  readonly key: string
  readonly what: 'missing on target' | 'not on source' | 'differs'
}

export interface TableComparison {
  readonly name: string
  readonly sourceRows: number
  readonly targetRows: number
  readonly unequalBuckets: number
  readonly keys: readonly KeyDifference[]
  /** Rows that stand on a target shard where their key does not belong. */
  readonly misplaced: number
  readonly same: boolean
}

export interface Snapshots {
  readonly sources: readonly HostClient[]
  readonly targets: readonly HostClient[]
}

const pick = (clients: readonly HostClient[], shards: readonly number[]): HostClient[] =>
  shards.map((shard) => clients[shard] as HostClient)

/** Compares one table. A reference table is compared with each of its copies. */
export async function compareTable(
  table: MoveTable,
  plan: MovePlan,
  snapshots: Snapshots,
): Promise<TableComparison> {
  const sources = pick(snapshots.sources, standingShards(table.from, plan.sourceCount))
  const groups = targetGroups(table, plan, snapshots.targets)
  const [expected, ...found] = await Promise.all([
    sumsOf(sources, table),
    ...groups.map((clients) => sumsOf(clients, table)),
  ])
  const keys: KeyDifference[] = []
  let unequal = 0
  for (const [i, sums] of found.entries()) {
    const buckets = unequalBuckets(expected, sums)
    unequal += buckets.length
    if (buckets.length === 0 || keys.length >= MAX_KEYS) continue
    const few = buckets.slice(0, MAX_BUCKETS)
    keys.push(...(await differingKeys(table, sources, groups[i] as HostClient[], few)))
  }
  const misplaced = await countMisplaced(table, plan, snapshots.targets)
  return {
    name: tableLabel(table),
    sourceRows: rowCount(expected),
    targetRows: Math.max(...found.map(rowCount)),
    unequalBuckets: unequal,
    keys: keys.slice(0, MAX_KEYS),
    misplaced,
    same: unequal === 0 && misplaced === 0,
  }
}

/** Connections that together hold the table once. */
function targetGroups(
  table: MoveTable,
  plan: MovePlan,
  targets: readonly HostClient[],
): HostClient[][] {
  if (table.to.kind === 'reference') return targets.map((client) => [client])
  return [pick(targets, standingShards(table.to, plan.targetCount))]
}

async function sumsOf(clients: readonly HostClient[], table: MoveTable): Promise<BucketSums> {
  return addSums(await Promise.all(clients.map((client) => readBucketSums(client, table))))
}

async function differingKeys(
  table: MoveTable,
  sources: readonly HostClient[],
  targets: readonly HostClient[],
  buckets: readonly number[],
): Promise<KeyDifference[]> {
  const read = async (clients: readonly HostClient[]): Promise<Map<string, string>> => {
    const parts = await Promise.all(clients.map((client) => readBucketRows(client, table, buckets)))
    const rows = new Map<string, string>()
    // A key that stands twice is told from one that stands once by its joined hashes.
    for (const [key, hash] of parts.flat()) rows.set(key, `${rows.get(key) ?? ''}${hash}`)
    return rows
  }
  const [here, there] = await Promise.all([read(sources), read(targets)])
  const found: KeyDifference[] = []
  for (const [key, hash] of here) {
    const twin = there.get(key)
    if (twin === undefined) found.push({ key, what: 'missing on target' })
    else if (twin !== hash) found.push({ key, what: 'differs' })
  }
  for (const key of there.keys()) if (!here.has(key)) found.push({ key, what: 'not on source' })
  return found
}

/** Reads the sharding keys of each target and counts those of another shard; also rows of tables that belong elsewhere. */
async function countMisplaced(
  table: MoveTable,
  plan: MovePlan,
  targets: readonly HostClient[],
): Promise<number> {
  const { to } = table
  if (to.kind === 'reference') return 0
  const counts = await Promise.all(
    targets.map(async (client, shard) => {
      if (to.kind === 'unsharded') {
        if (shard === to.shard) return 0
        const { rows } = await client.query(`SELECT count(*)::int AS rows FROM ${table.sqlName}`)
        return (rows[0] as { rows: number }).rows
      }
      const router = makeRowRouter({
        options: makeCopyOptions(),
        layout: { table: tableLabel(table), columns: [to.keyColumn], keyIndex: 0 },
        shardCount: plan.targetCount,
        placer: to.placer,
        onBatch: () => undefined,
      })
      await copyOut(
        client,
        `COPY (SELECT ${quoteName(to.keyColumn)} FROM ${table.sqlName}) TO STDOUT`,
        (chunk) => router.push(chunk),
      )
      router.finish()
      return router.rows - (router.rowsPerShard[shard] as number)
    }),
  )
  return counts.reduce((sum, count) => sum + count, 0)
}
