/**
 * Verification: N sources against M targets, all rows, at one position of each source.
 * Under writes the applier is held, each source gives a snapshot with its position, exactly the commits before it are
 * applied, the targets are snapshot, and the applier goes on while the comparison reads.
 */
import type { Clock } from '../../base/clock.js'
import { engineError, isEngineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { type Lsn, printLsn } from '../../replication/lsn.js'
import { createSnapshotSlot, type SnapshotSlot } from '../../replication/slot.js'
import type { Follower } from '../follow/follower.js'
import { nudge } from '../marker.js'
import { type MovePlan, planMove } from '../move-table.js'
import { readSourceTables } from '../preflight/source-table.js'
import { openShard, placeOf, type ReshardSide, withShard } from '../side.js'
import { quoteLiteral } from '../sql-names.js'
import { compareTable, type TableComparison } from './compare-tables.js'

export interface VerifyReport {
  readonly tables: readonly TableComparison[]
  /** Position of each source at which the two sides were compared; empty for quiet databases. */
  readonly sourceLsns: readonly string[]
  readonly same: boolean
  readonly elapsedMs: number
}

export interface VerifyOptions {
  readonly source: ReshardSide
  readonly target: ReshardSide
  readonly clock: Clock
  readonly onTable?: (comparison: TableComparison) => Promise<void> | void
}

export interface LiveVerifyOptions extends VerifyOptions {
  readonly plan: MovePlan
  readonly run: string
  readonly followers: readonly Follower[]
  /** How long the applier may be held for the snapshots. */
  readonly holdMs: number
}

const ATTEMPTS = 5

/** Verifies while the sources are written. @throws RESHARD_VERIFY_WAITS */
export async function verifyLive(options: LiveVerifyOptions): Promise<VerifyReport> {
  const startedMs = options.clock.monotonicMs()
  const opened: HostClient[] = []
  try {
    const { sources, targets, lsns } = await snapshotBoth(options, opened)
    const tables = await compareAll(options.plan, { sources, targets }, options)
    return report(tables, lsns.map(printLsn), options.clock.monotonicMs() - startedMs)
  } finally {
    await Promise.all(opened.map((client) => client.end().catch(() => undefined)))
  }
}

/** Compares two databases that nobody writes. */
export async function verifyQuiet(options: VerifyOptions): Promise<VerifyReport> {
  const { source, target, clock } = options
  const startedMs = clock.monotonicMs()
  const opened: HostClient[] = []
  try {
    const sources = await snapshotsOf(source, opened)
    const targets = await snapshotsOf(target, opened)
    const tables = await readSourceTables(sources[0] as HostClient)
    const plan = planMove(source, target, tables)
    const compared = await compareAll(plan, { sources, targets }, options)
    return report(compared, [], clock.monotonicMs() - startedMs)
  } finally {
    await Promise.all(opened.map((client) => client.end().catch(() => undefined)))
  }
}

function report(
  tables: readonly TableComparison[],
  sourceLsns: readonly string[],
  elapsedMs: number,
): VerifyReport {
  const same = tables.every((table) => table.same)
  return { tables, sourceLsns, same, elapsedMs: Math.round(elapsedMs) }
}

async function compareAll(
  plan: MovePlan,
  snapshots: { sources: HostClient[]; targets: HostClient[] },
  options: VerifyOptions,
): Promise<TableComparison[]> {
  const compared: TableComparison[] = []
  for (const table of plan.tables) {
    const comparison = await compareTable(table, plan, snapshots)
    compared.push(comparison)
    await options.onTable?.(comparison)
  }
  return compared
}

/** A repeatable-read transaction on each shard, its snapshot taken. */
async function snapshotsOf(side: ReshardSide, opened: HostClient[]): Promise<HostClient[]> {
  return Promise.all(
    side.shards.map(async (target) => {
      const client = await openShard(target)
      opened.push(client)
      await adminQuery(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      await adminQuery(client, 'SELECT 1')
      return client
    }),
  )
}

async function snapshotBoth(
  options: LiveVerifyOptions,
  opened: HostClient[],
): Promise<{ sources: HostClient[]; targets: HostClient[]; lsns: Lsn[] }> {
  const { source, target, followers } = options
  for (let attempt = 1; ; attempt++) {
    await Promise.all(followers.map((follower) => follower.hold()))
    const slots: SnapshotSlot[] = []
    try {
      await makeSlots(options, attempt, slots)
      // Something must come after the position, so that the streams show they are past it.
      await nudge(source)
      await Promise.all(
        followers.map((follower, shard) =>
          follower.holdAt((slots[shard] as SnapshotSlot).consistentLsn),
        ),
      )
      const targets = await snapshotsOf(target, opened)
      const sources = await Promise.all(
        source.shards.map(async (_, shard) => importSnapshot(options, shard, slots, opened)),
      )
      return { sources, targets, lsns: slots.map((slot) => slot.consistentLsn) }
    } catch (error) {
      const isLate = isEngineError(error) && error.code === 'REPLICATION_SLOT_WAITS'
      if (!isLate) throw error
      if (attempt >= ATTEMPTS) throw await tooLate(options, error)
    } finally {
      for (const follower of followers) follower.release()
      await Promise.all(slots.map((slot) => slot.release().catch(() => undefined)))
    }
    // The long transaction gets time to end while the applier works.
    await options.clock.sleep(options.holdMs)
  }
}

async function makeSlots(
  options: LiveVerifyOptions,
  attempt: number,
  slots: SnapshotSlot[],
): Promise<void> {
  const made = await Promise.allSettled(
    options.source.shards.map(async (source, shard) => {
      slots[shard] = await createSnapshotSlot(source, {
        name: `pgshard_${options.run}_v${attempt}_${shard}`,
        temporary: true,
        timeoutMs: options.holdMs,
        clock: options.clock,
      })
    }),
  )
  for (const end of made) if (end.status === 'rejected') throw end.reason
}

async function importSnapshot(
  options: LiveVerifyOptions,
  shard: number,
  slots: readonly SnapshotSlot[],
  opened: HostClient[],
): Promise<HostClient> {
  const client = await openShard(options.source.shards[shard] as never)
  opened.push(client)
  const name = quoteLiteral((slots[shard] as SnapshotSlot).snapshotName)
  await adminQuery(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
  await adminQuery(client, `SET TRANSACTION SNAPSHOT ${name}`)
  return client
}

async function tooLate(options: LiveVerifyOptions, cause: unknown): Promise<Error> {
  const oldest = await Promise.all(
    options.source.shards.map((target) =>
      withShard(target, async (client) => {
        const [row] = await adminQuery(
          client,
          `SELECT pid || ' of ' || coalesce(usename, '?') || ' since ' || xact_start AS who
             FROM pg_stat_activity WHERE xact_start IS NOT NULL AND pid <> pg_backend_pid()
            ORDER BY xact_start LIMIT 1`,
        )
        return row?.['who'] ? `${placeOf(target)} pid ${row['who']}` : undefined
      }),
    ),
  )
  return engineError(
    'RESHARD_VERIFY_WAITS',
    {
      server: options.source.name,
      waitedMs: options.holdMs,
      attempts: ATTEMPTS,
      oldest: oldest.find((who) => who !== undefined) ?? 'none is open now',
    },
    { cause },
  )
}

/** One table's differences in words, keys named. */
export function describeDifference(table: TableComparison): string {
  const keys = table.keys.map(({ key, what }) => `  ${key} ${what}`)
  const misplaced =
    table.misplaced > 0
      ? [`  ${table.misplaced} rows stand on a shard where they do not belong`]
      : []
  const head = `${table.name}: ${table.sourceRows} rows on the source, ${table.targetRows} on the target`
  return [head, ...keys, ...misplaced].join('\n')
}
