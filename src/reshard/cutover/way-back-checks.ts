/** What a stream back to the old side needs: asked before a move begins, and again when it is armed. */
import { adminQuery } from '../../pg/admin-query.js'
import { NO_WAY_BACK } from '../buckets/bucket-checks.js'
import { planMove } from '../move-table.js'
import { readServerFacts } from '../preflight/server-facts.js'
import type { SourceTable } from '../preflight/source-table.js'
import { onEachShard, placeOf, type ReshardSide } from '../side.js'

/** Why there can be no stream back, by the tables of either side; undefined when there can. */
export async function whyNoWayBack(
  source: ReshardSide,
  target: ReshardSide,
  tables: readonly SourceTable[],
): Promise<string | undefined> {
  if (target.whole) return NO_WAY_BACK
  const plan = planMove(target, source, tables)
  const unfit = await onEachShard(target, async (client, shard) => {
    const { walLevel } = await readServerFacts(client)
    if (walLevel === 'logical') return undefined
    const place = placeOf(target.shards[shard] as (typeof target.shards)[number])
    return `${place} has wal_level = ${walLevel}`
  })
  const found = unfit.find((one) => one !== undefined)
  if (found !== undefined) return found
  const keyless = plan.tables.find((table) => table.identity.length === 0)
  if (keyless) return `${keyless.sqlName} has no primary key`
  const stray = plan.tables.find(({ from, identity }) => {
    return target.shards.length > 1 && from.kind === 'sharded' && !identity.includes(from.keyIndex)
  })
  // Rows of two streams would meet in it, and nobody could say which came first.
  if (stray) return `the primary key of ${stray.sqlName} does not hold the sharding key`
  const loose = plan.tables.find((table) => {
    if (target.shards.length === 1 || table.from.kind !== 'sharded') return false
    const { keyColumn } = table.from
    const own = tables.find(({ schema, name }) => schema === table.schema && name === table.name)
    const keys = [...(own?.uniqueKeys ?? []), ...(own?.exclusions ?? [])]
    return keys.some(({ columns }) => !columns.includes(keyColumn))
  })
  if (loose) return `a unique key of ${loose.sqlName} does not hold the sharding key`
  return whyNoRole(source)
}

/** The login needs rights that only some can give. */
async function whyNoRole(source: ReshardSide): Promise<string | undefined> {
  const reasons = await onEachShard(source, async (client, shard) => {
    const [row] = await adminQuery(
      client,
      `SELECT r.rolsuper::text AS super, (r.rolsuper OR r.rolcreaterole)::text AS makes,
              EXISTS (SELECT FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
                       WHERE c.relrowsecurity AND n.nspname !~ '^pg_')::text AS policies
         FROM pg_roles r WHERE r.rolname = current_user`,
    )
    const place = placeOf(source.shards[shard] as (typeof source.shards)[number])
    if (row?.['super'] === 'true') return undefined
    if (row?.['makes'] !== 'true') return `the user on ${place} may not make roles`
    if (row?.['policies'] === 'true') return `${place} has tables with row security`
    const [grant] = await adminQuery(
      client,
      `SELECT has_parameter_privilege(current_user, 'session_replication_role', 'SET WITH GRANT OPTION')::text AS may`,
    )
    if (grant?.['may'] === 'true') return undefined
    return `the user on ${place} may not grant SET ON PARAMETER session_replication_role`
  })
  return reasons.find((reason) => reason !== undefined)
}
