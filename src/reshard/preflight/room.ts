/** How much a move carries, how long it takes at least, and what the sources must keep meanwhile. Pure; rough on purpose. */
import type { MovePlan, MoveTable } from '../move-table.js'
import { everyCopy } from '../move-table.js'
import { type Problem, warning } from './problem.js'
import type { ServerFacts } from './server-facts.js'

/** What one source shard is read, routed and written at; and how many times the copy's rows are read again by verify. */
const COPY_BYTES_PER_SEC = 40 * 2 ** 20
const VERIFY_BYTES_PER_SEC = 60 * 2 ** 20
/** Indexes are made in about this part of the time of the copy. */
const INDEX_SHARE = 0.5

export interface MoveEstimate {
  /** Table bytes that are read, of all sources. */
  readonly bytes: number
  /** What each target shard needs for tables and indexes, when keys are spread evenly. */
  readonly bytesPerTarget: number
  readonly copySeconds: number
  readonly verifySeconds: number
  /** WAL that the busiest source is likely to keep until the move has caught up; undefined when its rate is not known. */
  readonly walBytes: number | undefined
}

export function estimateMove(
  plan: MovePlan,
  sources: readonly ServerFacts[],
  indexBytes: number,
): MoveEstimate {
  const read = (table: MoveTable): number => table.bytes * table.sourceShards.length
  const bytes = plan.tables.reduce((sum, table) => sum + read(table), 0)
  const written = plan.tables.reduce((sum, table) => sum + read(table) * copiesOf(table, plan), 0)
  const growth = bytes === 0 ? 1 : 1 + indexBytes / bytes
  const perSource = bytes / plan.sourceCount
  const copySeconds = (perSource / COPY_BYTES_PER_SEC) * (1 + INDEX_SHARE)
  const verifySeconds = perSource / VERIFY_BYTES_PER_SEC
  const rates = sources.flatMap(({ walBytesPerSec }) => walBytesPerSec ?? [])
  return {
    bytes,
    bytesPerTarget: Math.round((written * growth) / plan.targetCount),
    copySeconds: Math.ceil(copySeconds),
    verifySeconds: Math.ceil(verifySeconds),
    walBytes: rates.length === 0 ? undefined : Math.round(Math.max(...rates) * copySeconds),
  }
}

const copiesOf = (table: MoveTable, plan: MovePlan): number =>
  table.to.kind === 'reference' ? everyCopy(table.to, plan.targetCount).length : 1

/** A source whose slot would be invalidated before the move has caught up. */
export function checkRoom(
  where: (shard: number) => string,
  sources: readonly ServerFacts[],
  estimate: MoveEstimate,
): Problem[] {
  return sources.flatMap((facts, shard): Problem[] => {
    const keep = facts.maxSlotWalKeepMb * 2 ** 20
    const wanted = (facts.walBytesPerSec ?? 0) * estimate.copySeconds
    if (keep < 0 || wanted <= keep) return []
    return [
      warning(
        where(shard),
        `about ${Math.ceil(wanted / 2 ** 20)} MB of WAL are written while it is copied, and max_slot_wal_keep_size keeps ${facts.maxSlotWalKeepMb} MB`,
        `ALTER SYSTEM SET max_slot_wal_keep_size = '${Math.ceil((2 * wanted) / 2 ** 20)}MB'; SELECT pg_reload_conf()`,
      ),
    ]
  })
}
