/**
 * Sources against targets by content, on connections whose snapshots are taken: sums per bucket, keys where they
 * differ, and every row of the targets on the shard that its key says.
 */
import { makeCopyOptions } from '../../copy/copy-options.js'
import { makeRowRouter } from '../../copy/row-router.js'
import { adminQuery } from '../../pg/admin-query.js'
import { copyOut } from '../../pg/copy-out.js'
import type { HostClient } from '../../pg/host-client.js'
import { quoteName } from '../../pg/sql-names.js'
import {
  type MovePlan,
  type MoveTable,
  onTargets,
  standingShards,
  tableLabel,
} from '../move-table.js'
import {
  addSums,
  type BucketRange,
  type BucketSums,
  readBucketRows,
  readBucketSums,
  rowCount,
  unequalBuckets,
} from './row-hash.js'

/** Differing buckets that are looked into at most, rows that are read for that, and keys that are named, per table. */
const MAX_BUCKETS = 64
const MAX_DRILLED_ROWS = 200_000n
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
  /** Why its rows could not be compared at all. */
  readonly reason?: string
}

/** Connections in open transactions, one a shard, their snapshots taken. */
export interface Snapshots {
  readonly sources: readonly HostClient[]
  readonly targets: readonly HostClient[]
}

const pick = (clients: readonly HostClient[], shards: readonly number[]): HostClient[] =>
  shards.map((shard) => clients[shard] as HostClient)

/** Compares some buckets of one table; rows on a wrong shard are looked for with its first bucket. */
export async function compareTable(
  table: MoveTable,
  plan: MovePlan,
  snapshots: Snapshots,
  range: BucketRange,
): Promise<TableComparison> {
  const sources = pick(snapshots.sources, table.sourceShards)
  const groups = targetGroups(table, plan, snapshots.targets)
  const there = onTargets(table, plan)
  const [expected, ...found] = await Promise.all([
    sumsOf(sources, table, range),
    ...groups.map((clients) => sumsOf(clients, there, range)),
  ])
  const clientsOf = (group: number): HostClient[] => groups[group] as HostClient[]
  const keys: KeyDifference[] = []
  let unequal = 0
  for (const [i, sums] of found.entries()) {
    const buckets = unequalBuckets(expected, sums)
    unequal += buckets.length
    if (buckets.length === 0 || keys.length >= MAX_KEYS) continue
    const few = affordable(buckets, expected, sums)
    const sides = {
      here: { table, clients: sources },
      there: { table: there, clients: clientsOf(i) },
    }
    keys.push(...(await differingKeys(sides, few, range.of)))
  }
  const misplaced = range.from === 0 ? await countMisplaced(there, plan, snapshots.targets) : 0
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

async function sumsOf(
  clients: readonly HostClient[],
  table: MoveTable,
  range: BucketRange,
): Promise<BucketSums> {
  return addSums(await Promise.all(clients.map((client) => readBucketSums(client, table, range))))
}

/** The buckets with the fewest rows first, as many as can be read into memory; at least one. */
function affordable(buckets: readonly number[], a: BucketSums, b: BucketSums): number[] {
  const rowsIn = (bucket: number): bigint => (a.get(bucket)?.[0] ?? 0n) + (b.get(bucket)?.[0] ?? 0n)
  const chosen: number[] = []
  let rows = 0n
  for (const bucket of [...buckets].sort((x, y) => Number(rowsIn(x) - rowsIn(y)))) {
    rows += rowsIn(bucket)
    if (chosen.length > 0 && (rows > MAX_DRILLED_ROWS || chosen.length >= MAX_BUCKETS)) break
    chosen.push(bucket)
  }
  return chosen
}

/** A table as one side has it. */
interface Placed {
  readonly table: MoveTable
  readonly clients: readonly HostClient[]
}

async function differingKeys(
  sides: { readonly here: Placed; readonly there: Placed },
  buckets: readonly number[],
  of: number,
): Promise<KeyDifference[]> {
  const read = async ({ table, clients }: Placed): Promise<Map<string, string>> => {
    const parts = await Promise.all(
      clients.map((client) => readBucketRows(client, table, buckets, of)),
    )
    // A key that stands twice is told from one that stands once by all its hashes.
    const hashes = new Map<string, string[]>()
    for (const [key, hash] of parts.flat()) {
      const known = hashes.get(key)
      if (known) known.push(hash)
      else hashes.set(key, [hash])
    }
    return new Map([...hashes].map(([key, all]) => [key, all.sort().join()]))
  }
  const [here, there] = await Promise.all([read(sides.here), read(sides.there)])
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
        return shard === to.shard ? 0 : countRows(client, table)
      }
      const router = makeRowRouter({
        options: makeCopyOptions(),
        layout: { table: tableLabel(table), columns: [to.keyColumn], keyIndex: 0 },
        shardCount: plan.placeCount,
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

async function countRows(client: HostClient, table: MoveTable): Promise<number> {
  const [row] = await adminQuery(client, `SELECT count(*)::text AS rows FROM ${table.sqlName}`)
  return Number(row?.['rows'])
}

/** One table's parts put together. */
export function addComparisons(parts: readonly TableComparison[]): TableComparison {
  const first = parts[0] as TableComparison
  const sum = (of: (part: TableComparison) => number): number =>
    parts.reduce((total, part) => total + of(part), 0)
  return {
    ...first,
    sourceRows: sum((part) => part.sourceRows),
    targetRows: sum((part) => part.targetRows),
    unequalBuckets: sum((part) => part.unequalBuckets),
    keys: parts.flatMap((part) => part.keys).slice(0, MAX_KEYS),
    misplaced: sum((part) => part.misplaced),
    same: parts.every((part) => part.same),
  }
}

/** One table's differences in words, keys named. */
export function describeDifference(table: TableComparison): string {
  if (table.reason !== undefined) return `${table.name}: ${table.reason}`
  const keys = table.keys.map(({ key, what }) => `  ${key} ${what}`)
  const misplaced =
    table.misplaced > 0
      ? [`  ${table.misplaced} rows stand on a shard where they do not belong`]
      : []
  const head = `${table.name}: ${table.sourceRows} rows on the source, ${table.targetRows} on the target`
  return [head, ...keys, ...misplaced].join('\n')
}
