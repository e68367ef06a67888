/**
 * Logical slots: made with an exported snapshot, listed, dropped.
 * The snapshot lives as long as the replication connection that made it stays open and idle.
 * Follows "Streaming Replication Protocol", CREATE_REPLICATION_SLOT.
 */
import type { Clock } from '../base/clock.js'
import { engineError, isEngineError } from '../errors/engine-error.js'
import { adminQuery } from '../pg/admin-query.js'
import { type HostClient, type HostTarget, openHostClient } from '../pg/host-client.js'
import { type Lsn, parseLsn } from './lsn.js'

export interface SnapshotSlot {
  readonly name: string
  /** Commits whose record starts here or later are not in the snapshot; the slot streams them. */
  readonly consistentLsn: Lsn
  /** For SET TRANSACTION SNAPSHOT, until `release`. */
  readonly snapshotName: string
  /** Ends the connection: the snapshot goes, and a temporary slot with it. */
  release(): Promise<void>
}

export interface SlotOptions {
  readonly name: string
  readonly temporary: boolean
  /** A slot waits for the transactions that are open; after this time it is given up. */
  readonly timeoutMs: number
  readonly clock: Clock
}

const quoted = (name: string): string => `"${name.replace(/"/g, '""')}"`
const place = (target: HostTarget): string => `${target.host}:${target.port}/${target.database}`

/**
 * Makes a logical slot and exports its snapshot.
 * @throws REPLICATION_SLOT, REPLICATION_SLOT_WAITS
 */
export async function createSnapshotSlot(
  target: HostTarget,
  options: SlotOptions,
): Promise<SnapshotSlot> {
  const client = await openHostClient(target, {
    applicationName: 'pgshard slot',
    replication: 'database',
    settings: { idle_in_transaction_session_timeout: '0', statement_timeout: '0' },
  })
  const word = options.temporary ? ' TEMPORARY' : ''
  const made = client.query(
    `CREATE_REPLICATION_SLOT ${quoted(options.name)}${word} LOGICAL pgoutput (SNAPSHOT 'export')`,
  )
  const timeUp = new AbortController()
  let isGivenUp = false
  try {
    const late = options.clock.sleep(options.timeoutMs, timeUp.signal).then(async () => {
      if (timeUp.signal.aborted) return undefined
      isGivenUp = true
      const where = { slot: options.name, server: place(target), waitedMs: options.timeoutMs }
      const detail = await giveUp(target, backendOf(client))
      throw engineError('REPLICATION_SLOT_WAITS', where, detail === undefined ? {} : { detail })
    })
    const ready = made.catch((error: unknown) => {
      if (isGivenUp) return late // it failed because we ended it
      throw error
    })
    const { rows } = (await Promise.race([ready, late])) as { rows: Record<string, string>[] }
    const row = rows[0] as Record<string, string>
    return {
      name: options.name,
      consistentLsn: parseLsn(row['consistent_point'] as string),
      snapshotName: row['snapshot_name'] as string,
      release: () => client.end(),
    }
  } catch (error) {
    made.catch(() => undefined)
    await abandon(client)
    if (isEngineError(error)) throw error
    const reason = error instanceof Error ? error.message : String(error)
    const where = { slot: options.name, server: place(target), reason }
    throw engineError('REPLICATION_SLOT', where, { cause: error })
  } finally {
    timeUp.abort()
  }
}

const backendOf = (client: HostClient): number =>
  (client as unknown as { processID: number }).processID

/**
 * Says whom a walsender waits for, and ends it: one that waits for a lock would not see that its client has gone, and
 * would hold its slot until then.
 */
async function giveUp(target: HostTarget, processId: number): Promise<string | undefined> {
  let client: HostClient | undefined
  try {
    client = await openHostClient(target, { applicationName: 'pgshard slot' })
    const [row] = await adminQuery(
      client,
      `WITH blocking AS (SELECT DISTINCT unnest(pg_blocking_pids($1::int)) AS pid)
       SELECT string_agg(CASE WHEN b.pid = 0 THEN 'a prepared transaction (pg_prepared_xacts)' ELSE
                'pid ' || b.pid || ' of ' || coalesce(a.usename, '?') || coalesce(' since ' || a.xact_start, '')
                || coalesce(': ' || left(nullif(a.query, ''), 100), '') END, '; ') AS who
         FROM blocking b LEFT JOIN pg_stat_activity a ON a.pid = b.pid`,
      [processId],
    )
    await adminQuery(client, 'SELECT pg_terminate_backend($1::int)', [processId])
    return row?.['who'] ?? undefined
  } catch {
    return undefined
  } finally {
    await client?.end().catch(() => undefined)
  }
}

/** Closes the socket under a command that will not end by itself; the server then drops a half-made slot. */
async function abandon(client: HostClient): Promise<void> {
  const { stream } = (client as unknown as { connection: { stream: { destroy(): void } } })
    .connection
  stream.destroy()
  await client.end().catch(() => undefined)
}

export interface SlotState {
  readonly name: string
  readonly active: boolean
  readonly lagBytes: number
}

/** The slots of this database whose names begin with `prefix`. */
export async function listSlots(client: HostClient, prefix: string): Promise<SlotState[]> {
  const { rows } = await client.query<{ name: string; active: boolean; lag: string | null }>(
    `SELECT slot_name::text AS name, active,
            pg_wal_lsn_diff(pg_current_wal_lsn(), confirmed_flush_lsn)::text AS lag
       FROM pg_replication_slots
      WHERE database = current_database() AND starts_with(slot_name::text, $1) ORDER BY 1`,
    [prefix],
  )
  return rows.map((row) => ({ name: row.name, active: row.active, lagBytes: Number(row.lag ?? 0) }))
}

/** Drops a slot; ends the walsender that holds it first. No slot of that name: nothing to do, false. */
export async function dropSlot(client: HostClient, name: string, clock: Clock): Promise<boolean> {
  for (let attempt = 0; ; attempt++) {
    const { rows } = await client.query<{ pid: number | null }>(
      'SELECT active_pid AS pid FROM pg_replication_slots WHERE slot_name = $1',
      [name],
    )
    const slot = rows[0]
    if (!slot) return false
    if (slot.pid !== null) await client.query('SELECT pg_terminate_backend($1)', [slot.pid])
    try {
      await client.query('SELECT pg_drop_replication_slot($1)', [name])
      return true
    } catch (error) {
      // 55006: its walsender has not ended yet; 42704: someone else was faster.
      const state = (error as { code?: string }).code
      if (state === '42704') return false
      if (state !== '55006' || attempt >= 100) throw error
      await clock.sleep(50)
    }
  }
}

/**
 * What a permanent slot has confirmed, after ending the walsender that an earlier process left on it. Undefined: there is
 * none that can be used; a half-made one is waited out.
 * @throws REPLICATION_SLOT_LOST when the server has given up its WAL
 */
export async function takeSlot(
  client: HostClient,
  name: string,
  clock: Clock,
): Promise<Lsn | undefined> {
  for (let attempt = 0; attempt < 200; attempt++) {
    const { rows } = await client.query<{
      pid: number | null
      lsn: string | null
      wal: string | null
    }>(
      `SELECT active_pid AS pid, confirmed_flush_lsn::text AS lsn, wal_status AS wal
         FROM pg_replication_slots WHERE slot_name = $1`,
      [name],
    )
    const slot = rows[0]
    if (!slot) return undefined
    if (slot.wal === 'lost') {
      throw engineError('REPLICATION_SLOT_LOST', {
        slot: name,
        server: place(placeOfClient(client)),
      })
    }
    if (slot.pid === null && slot.lsn !== null) return parseLsn(slot.lsn)
    if (slot.pid !== null) await client.query('SELECT pg_terminate_backend($1)', [slot.pid])
    await clock.sleep(50)
  }
  throw engineError('REPLICATION_SLOT', {
    slot: name,
    server: place(placeOfClient(client)),
    reason: 'the walsender that holds it does not end',
  })
}

const placeOfClient = (client: HostClient): HostTarget => ({
  host: client.host,
  port: client.port,
  database: client.database ?? '',
  user: client.user ?? '',
})
