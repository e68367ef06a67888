/**
 * The lock and the fence of the old side. All published tables of a source are locked in one statement, and in the same
 * transaction each gets a trigger that fires always and refuses writes; until that commits, a death lifts both.
 */
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import { adminQuery, type TextRow } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import type { MovePlan } from '../move-table.js'
import { onEachShard, openShard, placeOf, type ReshardSide, withShard } from '../side.js'

export const FENCE = 'pgshard_fence'

const fenceFunction = `
CREATE SCHEMA IF NOT EXISTS pgshard;
CREATE OR REPLACE FUNCTION pgshard.fence() RETURNS trigger LANGUAGE plpgsql AS $fence$
BEGIN
  RAISE EXCEPTION 'table "%" has moved to other shards', TG_TABLE_NAME
    USING ERRCODE = '25006', HINT = 'connect through pgshard serve; this copy is kept as it was at the cutover';
END $fence$;
REVOKE ALL ON FUNCTION pgshard.fence() FROM PUBLIC;`

/** Makes the function of the fence on every source, ahead of the locks. Idempotent. */
export async function prepareFence(source: ReshardSide): Promise<void> {
  await onEachShard(source, async (client) => {
    await adminQuery(client, fenceFunction)
  })
}

export interface LockedSource {
  /** Commits the fence and so lets the lock go: from now on writes to the old side fail with 25006. */
  fence(): Promise<void>
  /** Gives everything back as it was. */
  unlock(): Promise<void>
}

export interface LockOptions {
  readonly plan: MovePlan
  readonly clock: Clock
  /** On the monotonic clock. */
  readonly deadlineMs: number
  readonly budgetMs: number
}

const asLockFailure = (error: unknown): boolean =>
  ['55P03', '40P01'].includes((error as { sqlstate?: string }).sqlstate ?? '')

/** Locks the tables of one source against writers. @throws RESHARD_LOCK when the time is up */
export async function lockSource(
  source: ReshardSide,
  shard: number,
  options: LockOptions,
): Promise<LockedSource> {
  const { plan, clock, deadlineMs } = options
  const target = source.shards[shard] as (typeof source.shards)[number]
  const client = await openShard(target)
  const names = plan.tables.map((table) => table.sqlName)
  try {
    const half = await halfDeadlockTimeout(client)
    for (;;) {
      const left = Math.floor(deadlineMs - clock.monotonicMs())
      if (left <= 0) throw await cannotLock(source, shard, options)
      try {
        // Half of deadlock_timeout: we give up before another session is chosen as the victim of a deadlock with us.
        const wait = Math.max(1, Math.min(left, half))
        await adminQuery(
          client,
          `BEGIN; SET LOCAL lock_timeout = ${wait}; LOCK TABLE ${names.map((name) => `ONLY ${name}`).join(', ')} IN SHARE ROW EXCLUSIVE MODE; ${fenceTriggers(names)}`,
        )
        break
      } catch (error) {
        await client.query('ROLLBACK')
        if (!asLockFailure(error)) throw error
        await clock.sleep(10)
      }
    }
  } catch (error) {
    await client.end().catch(() => undefined)
    throw error
  }
  const end = async (word: string): Promise<void> => {
    try {
      await adminQuery(client, word)
    } finally {
      await client.end().catch(() => undefined)
    }
  }
  return { fence: () => end('COMMIT'), unlock: () => end('ROLLBACK') }
}

function fenceTriggers(names: readonly string[]): string {
  return names
    .map(
      (name) =>
        `CREATE OR REPLACE TRIGGER ${FENCE} BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ${name} ` +
        `FOR EACH STATEMENT EXECUTE FUNCTION pgshard.fence(); ALTER TABLE ${name} ENABLE ALWAYS TRIGGER ${FENCE};`,
    )
    .join(' ')
}

async function halfDeadlockTimeout(client: HostClient): Promise<number> {
  const [row] = await adminQuery(
    client,
    `SELECT setting FROM pg_settings WHERE name = 'deadlock_timeout'`,
  )
  return Math.max(1, Math.floor(Number((row as TextRow)['setting']) / 2))
}

async function cannotLock(
  source: ReshardSide,
  shard: number,
  options: LockOptions,
): Promise<Error> {
  const target = source.shards[shard] as (typeof source.shards)[number]
  const names = options.plan.tables.map((table) => table.sqlName)
  const holders = await withShard(target, (client) =>
    adminQuery(
      client,
      `SELECT DISTINCT coalesce('pid ' || l.pid || ' (' || coalesce(a.usename, '?') || ', ' || coalesce(a.state, '?') || ')',
              'prepared transaction ' || p.gid) AS who
         FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
         LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND l.virtualtransaction = '-1/' || p.transaction
        WHERE l.granted AND l.relation = ANY ($1::text::regclass[]::oid[])
          AND l.mode NOT IN ('AccessShareLock', 'RowShareLock') LIMIT 10`,
      [`{${names.map((name) => `"${name.replace(/(["\\])/g, '\\$1')}"`).join(',')}}`],
    ),
  )
  return engineError('RESHARD_LOCK', {
    server: placeOf(target),
    budgetMs: options.budgetMs,
    holders: holders.map((row) => row['who']).join(', ') || 'none now',
  })
}

/** Takes the fence away from every table that has one. Idempotent. */
export async function liftFence(client: HostClient): Promise<number> {
  const rows = await adminQuery(
    client,
    `SELECT tgrelid::regclass::text AS name FROM pg_trigger WHERE tgname = '${FENCE}'`,
  )
  for (const row of rows) await adminQuery(client, `DROP TRIGGER ${FENCE} ON ${row['name']}`)
  return rows.length
}
