/** `pgshard setup --drop`: takes guards and schema pgshard away again, unless something still uses them. */
import { engineError } from '../errors/engine-error.js'
import { inTransaction } from '../pg/admin-query.js'
import { qualifiedName } from '../pg/sql-names.js'
import { dropObjects, SCHEMA_LOCK } from './schema-text.js'
import { type SetupShard, withSetupShards } from './setup-shards.js'
import type { SetupTarget } from './setup-target.js'
import { GUARD_NAME } from './sharded-relations.js'

export interface DropReport {
  readonly database: string
  readonly dryRun: boolean
  readonly shards: readonly { readonly shard: number; readonly sql: string }[]
  readonly notes: readonly string[]
}

/** What keeps a shard from losing the schema; each query gives the number of what is left. */
const uses: readonly { readonly table?: string; readonly sql: string; readonly what: string }[] = [
  {
    sql: `SELECT count(*) AS n FROM pg_prepared_xacts WHERE database = current_database() AND gid LIKE 'pgshard\\_%'`,
    what: 'prepared transactions are not decided yet',
  },
  {
    table: 'pgshard.decision',
    sql: `SELECT count(*) AS n FROM pgshard.decision WHERE outcome = 'commit'`,
    what: 'committed transactions are not finished on every shard',
  },
  {
    table: 'pgshard.proxy',
    sql: `SELECT count(*) AS n FROM pgshard.proxy WHERE heartbeat_at > now() - interval '60 s'`,
    what: 'proxies are running',
  },
  {
    table: 'pgshard.reshard_run',
    sql: `SELECT count(*) AS n FROM pgshard.reshard_run WHERE state NOT IN ('cleaned', 'rolled_back')`,
    what: 'moves of data are not cleaned up',
  },
]

export function dropSetup(target: SetupTarget, dryRun: boolean): Promise<DropReport> {
  return withSetupShards(target, async (shards) => {
    for (const shard of shards) await refuseWhenUsed(shard)
    const sql = await Promise.all(shards.map(dropSql))
    if (!dryRun) {
      for (const [number, shard] of shards.entries()) {
        await inTransaction(shard.client, () => shard.ask(sql[number] as string))
      }
    }
    return {
      database: target.database,
      dryRun,
      shards: sql.map((text, shard) => ({ shard, sql: text })),
      notes: ['sequences keep their steps, so that new values stay disjoint'],
    }
  })
}

async function refuseWhenUsed(shard: SetupShard): Promise<void> {
  for (const { table, sql, what } of uses) {
    if (table !== undefined) {
      const [row] = await shard.ask(`SELECT to_regclass('${table}') IS NOT NULL AS present`)
      if (row?.['present'] !== 't') continue
    }
    const [row] = await shard.ask(sql)
    const count = Number(row?.['n'])
    if (count > 0) {
      throw engineError('SETUP_DROP_REFUSED', { shard: shard.label, reason: `${count} ${what}` })
    }
  }
}

async function dropSql(shard: SetupShard): Promise<string> {
  const guarded = await shard.ask(`
    SELECT n.nspname AS schema, c.relname AS name FROM pg_constraint g
    JOIN pg_class c ON c.oid = g.conrelid JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE g.conname = '${GUARD_NAME}' AND g.contype = 'c' AND g.conislocal ORDER BY 1, 2`)
  const guards = guarded.map((row) => {
    const table = qualifiedName({ schema: row['schema'] as string, name: row['name'] as string })
    return `ALTER TABLE ${table} DROP CONSTRAINT ${GUARD_NAME};\n`
  })
  return `SELECT pg_advisory_xact_lock(${SCHEMA_LOCK});\n${guards.join('')}${dropObjects.trimStart()}`
}
