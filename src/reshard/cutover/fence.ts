/**
 * The fence of a side: a statement trigger on every table and partition that refuses writes with 25006. Made disabled,
 * long before; the cutover only enables it, on all tables of a shard in one transaction behind one lock. A trigger that
 * looked at a row would look at it in the snapshot of an old writer: whether a trigger fires is not part of a snapshot.
 */
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import { adminQuery, type TextRow } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { quoteLiteral } from '../../pg/sql-names.js'
import { FENCE_MARK } from '../../topology/epoch.js'
import type { MovePlan } from '../move-table.js'
import { openShard, placeOf, type ReshardSide, withShard } from '../side.js'
import { reopenSql } from './epoch-store.js'

const fenceFunction = `
CREATE SCHEMA IF NOT EXISTS pgshard;
CREATE OR REPLACE FUNCTION pgshard.fence() RETURNS trigger LANGUAGE plpgsql AS $fence$
BEGIN
  -- The login of the stream back, which keeps this side up to date; a setting could be forged.
  IF session_user = TG_ARGV[0] THEN RETURN NULL; END IF;
  RAISE EXCEPTION 'table "%" has moved to other shards', TG_TABLE_NAME
    USING ERRCODE = '25006', CONSTRAINT = '${FENCE_MARK}',
      HINT = 'connect through pgshard serve; if a cutover was cut short: pgshard reshard resume';
END $fence$;
GRANT USAGE ON SCHEMA pgshard TO PUBLIC;`

/** How long the tables may be waited for, one by one, while clients go on. */
const PREPARE_MS = 60_000

/** Everything that writes to the tables of a plan can be said to: they, their partitions, what they are partitions of. */
const fencedTables = `
SELECT DISTINCT c.oid::regclass::text AS name, c.relkind = 'p' AS is_parent,
  (SELECT t.tgenabled FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = '${FENCE_MARK}')::text AS state,
  (SELECT encode(t.tgargs, 'escape') FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = '${FENCE_MARK}') AS argument
  FROM unnest($1::text::regclass[]) named(oid)
  CROSS JOIN LATERAL (SELECT named.oid UNION SELECT relid FROM pg_partition_tree(named.oid)
                      UNION SELECT relid FROM pg_partition_ancestors(named.oid)) family(oid)
  JOIN pg_class c ON c.oid = family.oid WHERE c.relkind IN ('r', 'p') ORDER BY 1`

const arrayOf = (names: readonly string[]): string =>
  `{${names.map((name) => `"${name.replace(/(["\\])/g, '\\$1')}"`).join(',')}}`

const namesOf = (plan: MovePlan): string[] => plan.tables.map((table) => table.sqlName)

/** Names in the text of regclass. */
async function tablesOn(client: HostClient, plan: MovePlan): Promise<TextRow[]> {
  return adminQuery(client, fencedTables, [arrayOf(namesOf(plan))])
}

/**
 * Makes the fence of one side, disabled, with `passRole` as the only login that it will let through. Idempotent.
 * @throws RESHARD_LOCK when a table cannot be had
 */
export async function prepareFence(
  side: ReshardSide,
  plan: MovePlan,
  passRole: string,
  clock: Clock,
): Promise<void> {
  await Promise.all(
    side.shards.map((target, shard) =>
      withShard(target, async (client) => {
        await adminQuery(client, fenceFunction)
        const half = await halfDeadlockTimeout(client)
        for (const table of await tablesOn(client, plan)) {
          if (table['argument'] === `${passRole}\\000`) continue
          const name = table['name'] as string
          const sql =
            `DROP TRIGGER IF EXISTS ${FENCE_MARK} ON ${name}; ` +
            `CREATE TRIGGER ${FENCE_MARK} BEFORE INSERT OR UPDATE OR DELETE OR TRUNCATE ON ${name} ` +
            `FOR EACH STATEMENT EXECUTE FUNCTION pgshard.fence(${quoteLiteral(passRole)}); ` +
            `ALTER TABLE ONLY ${name} DISABLE TRIGGER ${FENCE_MARK};`
          const deadlineMs = clock.monotonicMs() + PREPARE_MS
          const options = { plan, clock, deadlineMs, budgetMs: PREPARE_MS }
          await patiently(client, sql, half, side, shard, options)
          await adminQuery(client, 'COMMIT')
        }
      }),
    ),
  )
}

interface LockedSource {
  /** Commits the fence and so lets the lock go: from now on writes to this shard fail with 25006. */
  fence(): Promise<void>
  /** Gives the lock back; nothing was fenced. */
  unlock(): Promise<void>
}

interface LockOptions {
  readonly plan: MovePlan
  readonly clock: Clock
  /** On the monotonic clock. */
  readonly deadlineMs: number
  readonly budgetMs: number
}

/** A session that is ready to lock its shard: opened, and told all that it needs, before anybody has to wait. */
export interface FenceSession {
  readonly client: HostClient
  readonly names: readonly string[]
  readonly half: number
}

export async function openFenceSession(
  side: ReshardSide,
  shard: number,
  plan: MovePlan,
): Promise<FenceSession> {
  const client = await openShard(side.shards[shard] as (typeof side.shards)[number])
  try {
    const tables = await tablesOn(client, plan)
    const half = await halfDeadlockTimeout(client)
    return { client, names: tables.map((row) => row['name'] as string), half }
  } catch (error) {
    await client.end().catch(() => undefined)
    throw error
  }
}

/**
 * Locks all tables of one shard against writers, enables the fence, and says `closeSql`; not yet committed.
 * @throws RESHARD_LOCK when the time is up
 */
export async function lockSource(
  side: ReshardSide,
  shard: number,
  session: FenceSession,
  options: LockOptions & { readonly closeSql: string },
): Promise<LockedSource> {
  const { client, names, half } = session
  const list = names.map((name) => `ONLY ${name}`).join(', ')
  const enable = names
    .map((name) => `ALTER TABLE ONLY ${name} ENABLE ALWAYS TRIGGER ${FENCE_MARK};`)
    .join(' ')
  const lock = names.length === 0 ? '' : `LOCK TABLE ${list} IN SHARE ROW EXCLUSIVE MODE; `
  await patiently(client, `${lock}${enable} ${options.closeSql}`, half, side, shard, options)
  return {
    // Whatever the database sets: the fence must outlive a crash, standbys need not have it yet.
    fence: async () => {
      await adminQuery(client, 'SET LOCAL synchronous_commit = local; COMMIT')
    },
    unlock: async () => {
      await adminQuery(client, 'ROLLBACK')
    },
  }
}

const asLockFailure = (error: unknown): boolean =>
  ['55P03', '40P01'].includes((error as { sqlstate?: string }).sqlstate ?? '')

/** Opens a transaction and runs `sql` in it, again and again until the locks are there. */
async function patiently(
  client: HostClient,
  sql: string,
  half: number,
  side: ReshardSide,
  shard: number,
  options: LockOptions,
): Promise<void> {
  const { clock, deadlineMs } = options
  for (;;) {
    const left = Math.floor(deadlineMs - clock.monotonicMs())
    if (left <= 0) throw await cannotLock(side, shard, options)
    try {
      // Half of deadlock_timeout: we give up before another session is chosen as the victim of a deadlock with us.
      const wait = Math.max(1, Math.min(left, half))
      await adminQuery(client, `BEGIN; SET LOCAL lock_timeout = ${wait}; ${sql}`)
      return
    } catch (error) {
      await client.query('ROLLBACK')
      if (!asLockFailure(error)) throw error
      await clock.sleep(10)
    }
  }
}

async function halfDeadlockTimeout(client: HostClient): Promise<number> {
  const [row] = await adminQuery(
    client,
    `SELECT setting FROM pg_settings WHERE name = 'deadlock_timeout'`,
  )
  return Math.max(1, Math.floor(Number((row as TextRow)['setting']) / 2))
}

const CONFLICTING = "l.mode NOT IN ('AccessShareLock', 'RowShareLock')"
const BLOCKING =
  "(l.mode NOT IN ('AccessShareLock', 'RowShareLock', 'RowExclusiveLock') OR (l.pid IS NULL AND l.mode = 'RowExclusiveLock'))"

/** Who holds the tables of one shard in a way that a cutover cannot share, prepared transactions too. */
async function lockHolders(
  client: HostClient,
  plan: MovePlan,
  which = CONFLICTING,
): Promise<string[]> {
  const holders = await adminQuery(
    client,
    `SELECT DISTINCT coalesce('pid ' || l.pid || ' (' || coalesce(a.usename, '?') || ', ' ||
              CASE WHEN a.backend_type = 'autovacuum worker' THEN 'autovacuum'
                   WHEN l.mode = 'ShareUpdateExclusiveLock' THEN 'vacuum, index build or the like'
                   ELSE coalesce(a.state, '?') END || ')',
              'prepared transaction ' || p.gid) AS who
         FROM pg_locks l LEFT JOIN pg_stat_activity a ON a.pid = l.pid
         LEFT JOIN pg_prepared_xacts p ON l.pid IS NULL AND l.virtualtransaction = '-1/' || p.transaction
        WHERE l.granted AND l.relation = ANY ($1::text::regclass[]::oid[])
          AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())
          AND ${which} AND l.pid IS DISTINCT FROM pg_backend_pid() LIMIT 10`,
    [arrayOf((await tablesOn(client, plan)).map((row) => row['name'] as string))],
  )
  return holders.map((row) => row['who'] as string)
}

async function cannotLock(side: ReshardSide, shard: number, options: LockOptions): Promise<Error> {
  const target = side.shards[shard] as (typeof side.shards)[number]
  const holders = await withShard(target, (client) => lockHolders(client, options.plan))
  return engineError('RESHARD_LOCK', {
    server: placeOf(target),
    budgetMs: options.budgetMs,
    holders: holders.join(', ') || 'none now',
  })
}

const raised = `
SELECT tgrelid::regclass::text AS name, tgenabled::text AS state FROM pg_trigger WHERE tgname = '${FENCE_MARK}'`

/** Who holds them in a way that does not end with a client's statement: vacuum, index builds, DDL, prepared transactions. */
export async function lockBlockers(client: HostClient, plan: MovePlan): Promise<string[]> {
  return lockHolders(client, plan, BLOCKING)
}

/** Writes to some table of a shard are refused. */
export async function isRaised(client: HostClient): Promise<boolean> {
  return (await adminQuery(client, raised)).some((row) => row['state'] !== 'D')
}

/** Lets the tables of a shard be written again, whatever its row says. Idempotent. */
export async function lowerTriggers(client: HostClient): Promise<void> {
  const rows = (await adminQuery(client, raised)).filter((row) => row['state'] !== 'D')
  if (rows.length === 0) return
  const sql = rows.map((row) => `ALTER TABLE ONLY ${row['name']} DISABLE TRIGGER ${FENCE_MARK};`)
  await adminQuery(client, sql.join(' '))
}

/** The statements that lower what fence there is. */
export async function loweringSql(client: HostClient): Promise<string> {
  const rows = (await adminQuery(client, raised)).filter((row) => row['state'] !== 'D')
  return rows
    .map((row) => `ALTER TABLE ONLY ${row['name']} DISABLE TRIGGER ${FENCE_MARK};`)
    .join(' ')
}

/** Lets a shard be written again; the disabled triggers stay for the next cutover. Idempotent. */
export async function lowerFence(client: HostClient): Promise<void> {
  await adminQuery(client, `BEGIN; ${await loweringSql(client)} ${reopenSql} COMMIT;`)
}

/** Takes the fence away from every table that has one. Idempotent. */
export async function liftFence(client: HostClient): Promise<number> {
  const rows = await adminQuery(client, raised)
  for (const row of rows) await adminQuery(client, `DROP TRIGGER ${FENCE_MARK} ON ${row['name']}`)
  return rows.length
}
