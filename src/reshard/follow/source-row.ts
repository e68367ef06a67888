/** One row of a source, read in a snapshot of its own: for a change that the stream does not carry whole. */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostTarget } from '../../pg/host-client.js'
import { quoteLiteral } from '../../pg/sql-names.js'
import type { Lsn } from '../../replication/lsn.js'
import { createSnapshotSlot } from '../../replication/slot.js'
import type { MoveTable } from '../move-table.js'
import { withShard } from '../side.js'
import type { PlacedTuple } from './array-parameter.js'
import { fetchRow } from './fetch-row.js'

export interface SourceRow {
  /** Commits whose record starts here or later are not in it. */
  readonly watermark: Lsn
  /** Every value in text; undefined when there is no such row. */
  readonly row: PlacedTuple | undefined
}

const SLOT_TIMEOUT_MS = 600_000

export async function readSourceRow(
  source: HostTarget,
  run: string,
  clock: Clock,
  key: { readonly table: MoveTable; readonly row: PlacedTuple },
): Promise<SourceRow> {
  const slot = await createSnapshotSlot(source, {
    name: `pgshard_${run}_r${randomBytes(4).toString('hex')}`,
    temporary: true,
    timeoutMs: SLOT_TIMEOUT_MS,
    clock,
  })
  try {
    const row = await withShard(source, async (client) => {
      await adminQuery(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      await adminQuery(client, `SET TRANSACTION SNAPSHOT ${quoteLiteral(slot.snapshotName)}`)
      return fetchRow(client, key.table, key.row)
    })
    return { watermark: slot.consistentLsn, row }
  } finally {
    await slot.release().catch(() => undefined)
  }
}
