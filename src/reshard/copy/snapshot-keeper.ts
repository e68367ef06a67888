/**
 * Snapshots of one source to copy in, each with its watermark: the consistent point of a temporary slot. Several parts
 * share one; it is replaced after ten minutes, because every slot waits for the transactions that are then open and
 * every snapshot keeps dead rows from being removed.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient, HostTarget } from '../../pg/host-client.js'
import { quoteLiteral } from '../../pg/sql-names.js'
import { type Lsn, printLsn } from '../../replication/lsn.js'
import { createSnapshotSlot, type SnapshotSlot } from '../../replication/slot.js'
import { placeOf } from '../side.js'

const MAX_AGE_MS = 600_000
const SLOT_TIMEOUT_MS = 600_000
/** Tries to get a watermark that is not behind the permanent slot. */
const ATTEMPTS = 60

export interface SnapshotKeeperOptions {
  /** The server that is read. */
  readonly target: HostTarget
  /** Begin of the names of its slots. */
  readonly prefix: string
  /** The permanent slot's consistent point: a watermark below it would lose what lies between. */
  readonly floor: Lsn
  readonly clock: Clock
  readonly maxAgeMs?: number
  /** Makes a standby reach its next consistent point soon. */
  readonly nudge?: () => Promise<void>
}

interface Kept {
  readonly slot: SnapshotSlot
  readonly madeMs: number
}

/** A transaction of a reader, and what it sees. */
export interface ReaderTransaction {
  readonly snapshot: string
  readonly watermark: Lsn
}

export class SnapshotKeeper {
  readonly #options: SnapshotKeeperOptions
  #current: Kept | undefined
  /** One after the other: a snapshot must not go while it is being imported. */
  #turn: Promise<unknown> = Promise.resolve()

  constructor(options: SnapshotKeeperOptions) {
    this.#options = options
  }

  /** Takes the first snapshot before anybody enters it. */
  prepare(): Promise<void> {
    const preparing = this.#turn.then(async () => {
      if (!this.#isFresh()) await this.#replace()
    })
    this.#turn = preparing.catch(() => undefined)
    return preparing
  }

  /**
   * Leaves the client in a transaction of the present snapshot; `held` is the one that it is in already. That is given up
   * before a new snapshot is waited for: who waits for its locks may have a transaction that the slot waits for.
   */
  async enter(client: HostClient, held?: ReaderTransaction): Promise<ReaderTransaction> {
    if (held && this.#isFresh() && held.snapshot === this.#current?.slot.snapshotName) return held
    if (held) await adminQuery(client, 'COMMIT')
    const entering = this.#turn.then(() => this.#enter(client))
    this.#turn = entering.catch(() => undefined)
    return entering
  }

  async close(): Promise<void> {
    await this.#turn
    const kept = this.#current
    this.#current = undefined
    await kept?.slot.release().catch(() => undefined)
  }

  #isFresh(): boolean {
    const { clock, maxAgeMs = MAX_AGE_MS } = this.#options
    return this.#current !== undefined && clock.monotonicMs() - this.#current.madeMs < maxAgeMs
  }

  async #enter(client: HostClient): Promise<ReaderTransaction> {
    const { slot } = this.#current && this.#isFresh() ? this.#current : await this.#replace()
    await adminQuery(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await adminQuery(client, `SET TRANSACTION SNAPSHOT ${quoteLiteral(slot.snapshotName)}`)
    return { snapshot: slot.snapshotName, watermark: slot.consistentLsn }
  }

  async #replace(): Promise<Kept> {
    const old = this.#current
    this.#current = undefined
    await old?.slot.release().catch(() => undefined)
    const { target, prefix, floor, clock, nudge } = this.#options
    for (let attempt = 1; ; attempt++) {
      const making = createSnapshotSlot(target, {
        name: `${prefix}${randomBytes(4).toString('hex')}`,
        temporary: true,
        timeoutMs: SLOT_TIMEOUT_MS,
        clock,
      })
      making.catch(() => undefined)
      await nudge?.()
      const slot = await making
      if (slot.consistentLsn >= floor) {
        const kept = { slot, madeMs: clock.monotonicMs() }
        this.#current = kept
        return kept
      }
      await slot.release().catch(() => undefined)
      if (attempt === ATTEMPTS) {
        throw engineError('RESHARD_READER_BEHIND', {
          server: placeOf(target),
          reached: printLsn(slot.consistentLsn),
          wanted: printLsn(floor),
        })
      }
      await clock.sleep(1_000)
    }
  }
}
