/**
 * Snapshots of both sides that hold the same rows. Under writes the applier is held, a temporary slot on each source
 * gives a snapshot with its position, exactly the commits before it are applied, the targets are snapshot, and the
 * applier goes on while the comparison reads.
 */
import type { Clock } from '../../base/clock.js'
import { engineError, isEngineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient, HostTarget } from '../../pg/host-client.js'
import { quoteLiteral } from '../../pg/sql-names.js'
import { type Lsn, printLsn } from '../../replication/lsn.js'
import { createSnapshotSlot, type SnapshotSlot } from '../../replication/slot.js'
import { nudge } from '../marker.js'
import { openShard, type ReshardSide } from '../side.js'
import type { Snapshots } from './compare-tables.js'
import { verifySettings } from './row-hash.js'

/** What applies the changes of one source while it is verified. */
export interface HeldStream {
  /** Stops between two transactions; resolves when all that was begun is committed on the targets. */
  hold(): Promise<void>
  /** Lets it apply the commits whose record starts before `lsn`; resolves when they are committed. */
  holdAt(lsn: Lsn): Promise<void>
  release(): void
}

export interface SnapshotOptions {
  readonly source: ReshardSide
  readonly target: ReshardSide
  readonly clock: Clock
}

export interface LiveSnapshotOptions extends SnapshotOptions {
  readonly run: string
  /** One a source shard. */
  readonly followers: readonly HeldStream[]
  /** How long the applier may be held for the snapshots. */
  readonly holdMs: number
  /** Told when a source gave no snapshot in time, and who was in the way. */
  readonly onWait?: (text: string) => void
}

/** Both sides at one position. `close` ends the connections. */
export interface BothSides extends Snapshots {
  /** Position of each source; empty for quiet databases. */
  readonly lsns: readonly string[]
  close(): Promise<void>
}

const ATTEMPTS = 5

const begin = 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'

/** Connections that are ended together. */
class Opened {
  readonly #clients: HostClient[] = []

  async open(target: HostTarget): Promise<HostClient> {
    const client = await openShard(target, verifySettings)
    this.#clients.push(client)
    await adminQuery(client, begin)
    return client
  }

  /** A transaction on each shard, its snapshot taken now. */
  now(side: ReshardSide): Promise<HostClient[]> {
    return Promise.all(
      side.shards.map(async (target) => {
        const client = await this.open(target)
        await adminQuery(client, 'SELECT 1')
        return client
      }),
    )
  }

  readonly close = async (): Promise<void> => {
    await Promise.all(this.#clients.splice(0).map((client) => client.end().catch(() => undefined)))
  }
}

/** Both sides as they are now, for databases that nobody writes. */
export async function snapshotsNow(options: SnapshotOptions): Promise<BothSides> {
  const opened = new Opened()
  try {
    const sources = await opened.now(options.source)
    const targets = await opened.now(options.target)
    return { sources, targets, lsns: [], close: opened.close }
  } catch (error) {
    await opened.close()
    throw error
  }
}

/** Both sides at one position of each source, while the sources are written. @throws RESHARD_VERIFY_WAITS */
export async function snapshotsLive(options: LiveSnapshotOptions): Promise<BothSides> {
  const { holdMs, clock } = options
  for (let attempt = 1; ; attempt++) {
    try {
      return await attemptLive(options, attempt)
    } catch (error) {
      const isLate = isEngineError(error) && error.code === 'REPLICATION_SLOT_WAITS'
      if (!isLate) throw error
      const oldest = error.detail ?? 'none is open now'
      if (attempt >= ATTEMPTS) {
        const where = { server: options.source.name, waitedMs: holdMs, attempts: ATTEMPTS, oldest }
        throw engineError('RESHARD_VERIFY_WAITS', where, { cause: error })
      }
      options.onWait?.(
        `no snapshot of the source within ${holdMs} ms, trying again; in the way: ${oldest}`,
      )
    }
    // The old transaction gets time to end while the applier works.
    await clock.sleep(holdMs)
  }
}

async function attemptLive(options: LiveSnapshotOptions, attempt: number): Promise<BothSides> {
  const { source, target, followers } = options
  const opened = new Opened()
  const slots: SnapshotSlot[] = []
  try {
    await Promise.all(followers.map((follower) => follower.hold()))
    await makeSlots(options, attempt, slots)
    // Something must come after the position, so that the streams show they are past it.
    await nudge(source)
    await Promise.all(
      followers.map((follower, shard) =>
        follower.holdAt((slots[shard] as SnapshotSlot).consistentLsn),
      ),
    )
    const targets = await opened.now(target)
    const sources = await Promise.all(
      source.shards.map((shard, number) => importSnapshot(opened, shard, slots[number])),
    )
    const lsns = slots.map((slot) => printLsn(slot.consistentLsn))
    return { sources, targets, lsns, close: opened.close }
  } catch (error) {
    await opened.close()
    throw error
  } finally {
    for (const follower of followers) follower.release()
    await Promise.all(slots.map((slot) => slot?.release().catch(() => undefined)))
  }
}

async function makeSlots(
  options: LiveSnapshotOptions,
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
  opened: Opened,
  target: HostTarget,
  slot: SnapshotSlot | undefined,
): Promise<HostClient> {
  const client = await opened.open(target)
  await adminQuery(client, `SET TRANSACTION SNAPSHOT ${quoteLiteral(slot?.snapshotName ?? '')}`)
  return client
}
