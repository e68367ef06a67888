/** What every load finds out before its first row: the table, where its rows go, and what its lanes have in common. */
import { engineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import { type CopyTable, readCopyTable, tableSql } from '../copy-target.js'
import type { ShardClients } from '../shards/shard-clients.js'
import type { LaneOptions } from './lane-options.js'
import type { LoadPlacement } from './load-placement.js'
import type { LoadRequest, LoadWatch } from './load-request.js'

export interface LoadSetting {
  readonly table: CopyTable
  readonly placement: LoadPlacement
  /** Numbers of the shards that get rows; an index means a place in this list. */
  readonly targets: readonly number[]
  readonly urls: readonly string[]
}

/** @throws COPY_TABLE_MISSING, and what `placementOf` throws */
export async function findSetting(
  request: LoadRequest,
  clients: ShardClients,
): Promise<LoadSetting> {
  const table = await clients.use(request.urls[0] as string, (client) =>
    readCopyTable(client, request.table, 0),
  )
  const placement = request.placementOf(table)
  const targets =
    placement.kind === 'unsharded' ? [placement.shard] : request.urls.map((_, shard) => shard)
  return {
    table,
    placement,
    targets,
    urls: targets.map((shard) => request.urls[shard] as string),
  }
}

/** `stop`: aborted by the first failure, so that other lanes stop too. */
export function laneOf(
  request: LoadRequest,
  watch: LoadWatch,
  setting: LoadSetting,
  stop: AbortSignal,
): LaneOptions {
  const { placement, table, targets } = setting
  return {
    table,
    options: request.options,
    compression: request.compression,
    shardCount: targets.length,
    signal: AbortSignal.any([watch.signal, stop]),
    pace: makePace(request.maxBytesPerSec, watch),
    onProgress: (bytes, rows) => watch.onProgress(bytes, rows),
    ...(request.columns === undefined ? {} : { columns: request.columns }),
    ...(placement.kind === 'sharded' ? { placer: placement.placer } : {}),
  }
}

/** A pause that keeps the mean rate below the limit. */
function makePace(maxBytesPerSec: number | undefined, watch: LoadWatch): LaneOptions['pace'] {
  if (maxBytesPerSec === undefined) return () => undefined
  const { clock, signal } = watch
  const startedMs = clock.monotonicMs()
  let bytes = 0
  return (more) => {
    bytes += more
    const dueMs = (bytes * 1000) / maxBytesPerSec - (clock.monotonicMs() - startedMs)
    return dueMs > 1 ? clock.sleep(dueMs, signal) : undefined
  }
}

/** Committed rows of the table, by index of the shard. */
export async function countRows(
  { table, urls }: LoadSetting,
  clients: ShardClients,
): Promise<number[]> {
  const sql = `select count(*) as n from ${tableSql(table)}`
  const count = async (url: string) =>
    await clients.use(url, async (client) => Number((await adminQuery(client, sql))[0]?.['n']))
  return await Promise.all(urls.map(count))
}

/** @throws COPY_VERIFY_FAILED when a shard has other rows more than were written */
export function verifyCounts(
  { targets }: LoadSetting,
  before: readonly number[],
  after: readonly number[],
  written: readonly number[],
): void {
  for (const [index, rows] of after.entries()) {
    const found = rows - (before[index] as number)
    if (found !== written[index])
      throw engineError('COPY_VERIFY_FAILED', {
        shard: targets[index] as number,
        found,
        written: written[index] as number,
      })
  }
}
