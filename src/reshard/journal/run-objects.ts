/** What a run makes on the sources: publications and slots. Each is in the journal before it is there. */
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostTarget } from '../../pg/host-client.js'
import { quoteName } from '../../pg/sql-names.js'
import type { Lsn } from '../../replication/lsn.js'
import { createSnapshotSlot, dropSlot, takeSlot } from '../../replication/slot.js'
import { type MovePlan, tablesOf } from '../move-table.js'
import { placeOf, type ReshardSide, withShard } from '../side.js'
import type { Journal, JournalObject } from './journal.js'

export const publicationName = (run: string): string => `pgshard_${run}`
export const slotName = (run: string, shard: number): string => `pgshard_${run}_${shard}`

/** A slot waits for the transactions that are open on its source when it is made. */
const SLOT_TIMEOUT_MS = 600_000

/** One publication a source: the tables that it streams. Idempotent. */
export async function makePublications(
  journal: Journal,
  source: ReshardSide,
  plan: MovePlan,
): Promise<void> {
  const name = publicationName(journal.run)
  for (const [shard, target] of source.shards.entries()) {
    await journal.register({ kind: 'publication', side: 'source', shard, name })
    const tables = tablesOf(plan, shard).map((table) => `ONLY ${table.sqlName}`)
    const list = tables.length === 0 ? '' : ` FOR TABLE ${tables.join(', ')}`
    await withShard(target, async (client) => {
      const known = await adminQuery(
        client,
        'SELECT 1 AS n FROM pg_publication WHERE pubname = $1',
        [name],
      )
      if (known.length > 0) return
      await adminQuery(client, `CREATE PUBLICATION ${quoteName(name)}${list}`)
    })
  }
}

/**
 * One permanent slot a source; one that is there already is kept. What each has confirmed: before the copy that is its
 * consistent point. `mustStand`: rows that were copied lean on it.
 * @throws RESHARD_SLOT_GONE
 */
export async function makeSlots(
  journal: Journal,
  source: ReshardSide,
  clock: Clock,
  mustStand: boolean,
): Promise<Lsn[]> {
  for (const shard of source.shards.keys()) {
    const name = slotName(journal.run, shard)
    await journal.register({ kind: 'slot', side: 'source', shard, name })
  }
  const ends = await Promise.allSettled(
    source.shards.map((target, shard) =>
      makeSlot(target, slotName(journal.run, shard), clock, mustStand),
    ),
  )
  return ends.map((end) => {
    if (end.status === 'rejected') throw end.reason
    return end.value
  })
}

async function makeSlot(
  target: HostTarget,
  name: string,
  clock: Clock,
  mustStand: boolean,
): Promise<Lsn> {
  const standing = await withShard(target, (client) => takeSlot(client, name, clock))
  if (standing !== undefined) return standing
  if (mustStand) throw engineError('RESHARD_SLOT_GONE', { slot: name, server: placeOf(target) })
  const slot = await createSnapshotSlot(target, {
    name,
    temporary: false,
    timeoutMs: SLOT_TIMEOUT_MS,
    clock,
  })
  await slot.release().catch(() => undefined)
  return slot.consistentLsn
}

/** Drops publications and slots that are recorded. Idempotent: what is gone is not missed. */
export async function dropSourceObjects(
  objects: readonly JournalObject[],
  source: ReshardSide,
  clock: Clock,
  onGone: (object: JournalObject) => Promise<void>,
): Promise<JournalObject[]> {
  const wanted = objects.filter(
    ({ kind, side }) => side === 'source' && (kind === 'slot' || kind === 'publication'),
  )
  for (const object of wanted) {
    const target = source.shards[object.shard]
    if (!target) continue
    await withShard(target, async (client) => {
      if (object.kind === 'slot') await dropSlot(client, object.name, clock)
      else await adminQuery(client, `DROP PUBLICATION IF EXISTS ${quoteName(object.name)}`)
    })
    await onGone(object)
  }
  return wanted
}
