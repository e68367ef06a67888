/**
 * One run at a time: session locks that end with the process that took them. The lock of a run stands on the journal's
 * server; that of a writer on the target that it writes, so that what a dead process still has under way there ends first.
 */
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'

/** First halves of our advisory locks. */
export const RUN_LOCK = 730_749_831
export const WRITER_LOCK = 730_749_832

const holderQuery = `
SELECT l.pid::text AS pid, coalesce(host(a.client_addr), 'local') AS address, a.application_name AS application
  FROM pg_locks l JOIN pg_stat_activity a USING (pid)
 WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 AND l.classid = $1
   AND l.objid = (hashtext($2)::int8 & 4294967295)::oid
   AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`

async function tryLock(client: HostClient, space: number, name: string): Promise<boolean> {
  const [row] = await adminQuery(
    client,
    'SELECT pg_try_advisory_lock($1::int, hashtext($2))::text AS got',
    [space, name],
  )
  return row?.['got'] === 'true'
}

/** A process works on the run. */
export async function isRunLocked(client: HostClient, name: string): Promise<boolean> {
  return (await adminQuery(client, holderQuery, [RUN_LOCK, name])).length > 0
}

/** How long the sessions of a process that has just died may take to end. */
const GRACE_MS = 5_000

/** Takes the lock of a run for the life of `client`. @throws RESHARD_BUSY */
export async function lockRun(client: HostClient, name: string, clock: Clock): Promise<void> {
  const deadlineMs = clock.monotonicMs() + GRACE_MS
  while (!(await tryLock(client, RUN_LOCK, name))) {
    if (clock.monotonicMs() > deadlineMs) {
      const [holder] = await adminQuery(client, holderQuery, [RUN_LOCK, name])
      throw engineError('RESHARD_BUSY', {
        holder: holder ? `backend ${holder['pid']} from ${holder['address']}` : 'another session',
      })
    }
    await clock.sleep(100)
  }
}

/**
 * Takes the lock of a writer. Who calls holds the run: another holder is what an earlier process left, and is ended.
 * @throws RESHARD_BUSY when it does not end
 */
export async function lockWriter(client: HostClient, name: string, clock: Clock): Promise<void> {
  const deadlineMs = clock.monotonicMs() + 6 * GRACE_MS
  for (let attempt = 0; !(await tryLock(client, WRITER_LOCK, name)); attempt++) {
    const [holder] = await adminQuery(client, holderQuery, [WRITER_LOCK, name])
    if (clock.monotonicMs() > deadlineMs) {
      throw engineError('RESHARD_BUSY', { holder: `backend ${holder?.['pid'] ?? 'unknown'}` })
    }
    if (holder && attempt > 0) {
      await adminQuery(client, 'SELECT pg_terminate_backend($1)', [Number(holder['pid'])])
    }
    await clock.sleep(100)
  }
}
