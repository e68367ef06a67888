/** What a run makes on the sources: publications and slots. Each is in the journal before it is there. */
import type { Clock } from '../../base/clock.js'
import { adminQuery } from '../../pg/admin-query.js'
import { createSnapshotSlot, dropSlot, type SnapshotSlot } from '../../replication/slot.js'
import { type MovePlan, tablesOf } from '../move-table.js'
import { type ReshardSide, withShard } from '../side.js'
import { quoteName } from '../sql-names.js'
import type { Journal, JournalObject } from './journal.js'

export const publicationName = (run: string): string => `pgshard_${run}`
export const slotName = (run: string, shard: number): string => `pgshard_${run}_${shard}`

/** A slot waits for the transactions that are open on its source when it is made. */
const SLOT_TIMEOUT_MS = 600_000

/** One publication a source: the tables that it streams. */
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
      await adminQuery(client, `CREATE PUBLICATION ${quoteName(name)}${list}`)
    })
  }
}

/** One permanent slot a source, each with its snapshot. Releases all when one fails. */
export async function makeSlots(
  journal: Journal,
  source: ReshardSide,
  clock: Clock,
): Promise<SnapshotSlot[]> {
  for (const shard of source.shards.keys()) {
    const name = slotName(journal.run, shard)
    await journal.register({ kind: 'slot', side: 'source', shard, name })
  }
  const made = await Promise.allSettled(
    source.shards.map((target, shard) =>
      createSnapshotSlot(target, {
        name: slotName(journal.run, shard),
        temporary: false,
        timeoutMs: SLOT_TIMEOUT_MS,
        clock,
      }),
    ),
  )
  const slots = made.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
  for (const end of made) {
    if (end.status === 'fulfilled') continue
    await Promise.all(slots.map((slot) => slot.release().catch(() => undefined)))
    throw end.reason
  }
  return slots
}

/** Drops publications and slots that are recorded. Idempotent: what is gone is not missed. */
export async function dropSourceObjects(
  objects: readonly JournalObject[],
  source: ReshardSide,
  clock: Clock,
  onGone: (object: JournalObject) => Promise<void>,
): Promise<JournalObject[]> {
  const wanted = objects.filter(({ kind }) => kind === 'slot' || kind === 'publication')
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
