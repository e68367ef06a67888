/** What preflight asks of each server, in as few questions as it takes. Reads only. */
import { adminQuery, type TextRow } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'

export interface ServerFacts {
  readonly version: number
  readonly user: string
  readonly database: string
  /** Run by a provider who keeps superuser to himself. */
  readonly isManaged: boolean
  readonly walLevel: string
  readonly maxSlots: number
  readonly freeSlots: number
  readonly maxSenders: number
  readonly freeSenders: number
  readonly maxConnections: number
  readonly freeConnections: number
  readonly maxPreparedTransactions: number
  /** -1: no bound. */
  readonly maxSlotWalKeepMb: number
  readonly idleSlotTimeoutS: number
  /** WAL written by the server, on average since its statistics were reset; undefined before anything is known. */
  readonly walBytesPerSec: number | undefined
  readonly preparedTransactions: readonly { readonly gid: string; readonly seconds: number }[]
  /** Writing transactions that are open, of this user or where we may see them. */
  readonly oldTransactions: readonly OpenTransaction[]
  readonly unreadableSequences: readonly string[]
  readonly sequences: number
  readonly mayReplicate: boolean
  readonly mayCreate: boolean
  readonly isStandby: boolean
  readonly largeObjects: number
  readonly encoding: string
  readonly mayUseReplicaRole: boolean
  readonly extensions: readonly { readonly name: string; readonly version: string }[]
  readonly availableExtensions: readonly {
    readonly name: string
    readonly versions: readonly string[]
  }[]
  readonly roles: readonly string[]
  /** Owners and grantees of what a user made. */
  readonly usedRoles: readonly string[]
  /** Owners of what a user made, with those of objects in schema public apart. */
  readonly owners: readonly string[]
  readonly ownersInPublic: readonly string[]
  /** Roles that the user can become, and such that may create in schema public. */
  readonly settableRoles: readonly string[]
  readonly creatorsInPublic: readonly string[]
  /** Objects besides tables that a user made, by kind. */
  readonly otherObjects: number
  readonly materializedViews: readonly string[]
  /** Tables that inherit without being partitions, and their parents. */
  readonly inheriting: readonly string[]
  readonly foreignKeys: readonly ForeignKey[]
}

export interface OpenTransaction {
  readonly pid: number
  readonly user: string
  readonly seconds: number
}

export interface ForeignKey {
  readonly name: string
  readonly table: string
  readonly columns: readonly string[]
  readonly parent: string
  readonly parentColumns: readonly string[]
}

const isUserSchema = `n.nspname NOT IN ('pg_catalog', 'information_schema', 'pgshard') AND n.nspname !~ '^pg_'`
const notOfExtension = (catalog: string, oid: string): string =>
  `NOT EXISTS (SELECT FROM pg_depend d WHERE d.classid = '${catalog}'::regclass AND d.objid = ${oid} AND d.deptype = 'e')`

/** Owners of tables, views, sequences and types of rows, of functions, other types and schemas; extensions bring their own. */
const ownersOf = (where: string): string => `
  SELECT c.relowner AS owner FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
   WHERE c.relkind IN ('r', 'p', 'v', 'm', 'S', 'f', 'c') AND ${isUserSchema} AND ${where} AND ${notOfExtension('pg_class', 'c.oid')}
  UNION SELECT p.proowner FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
   WHERE ${isUserSchema} AND ${where} AND ${notOfExtension('pg_proc', 'p.oid')}
  UNION SELECT t.typowner FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
   WHERE t.typtype IN ('d', 'e', 'r') AND ${isUserSchema} AND ${where} AND ${notOfExtension('pg_type', 't.oid')}
  UNION SELECT n.nspowner FROM pg_namespace n
   WHERE n.nspname <> 'public' AND ${isUserSchema} AND ${where} AND ${notOfExtension('pg_namespace', 'n.oid')}`

const factsQuery = `
SELECT current_setting('server_version_num') AS version, current_setting('wal_level') AS wal_level,
  current_user AS "user", current_database() AS database,
  EXISTS (SELECT FROM pg_roles WHERE rolname IN ('rds_superuser', 'cloudsqlsuperuser', 'azure_pg_admin', 'alloydbsuperuser'))::text AS managed,
  current_setting('max_replication_slots') AS max_slots, current_setting('max_wal_senders') AS max_senders,
  current_setting('max_connections') AS max_connections, current_setting('max_prepared_transactions') AS max_prepared,
  (current_setting('max_replication_slots')::int - (SELECT count(*) FROM pg_replication_slots))::text AS slots,
  (current_setting('max_wal_senders')::int - (SELECT count(*) FROM pg_stat_replication))::text AS senders,
  (current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
     - (SELECT sum(numbackends) FROM pg_stat_database))::text AS connections,
  (SELECT setting FROM pg_settings WHERE name = 'max_slot_wal_keep_size') AS keep_mb,
  (SELECT setting FROM pg_settings WHERE name = 'idle_replication_slot_timeout') AS idle_timeout,
  (SELECT (wal_bytes / nullif(extract(epoch FROM now() - stats_reset), 0))::text FROM pg_stat_wal) AS wal_rate,
  (SELECT json_agg(json_build_object('gid', gid, 'seconds', extract(epoch FROM now() - prepared)::int))
     FROM pg_prepared_xacts)::text AS prepared,
  (SELECT json_agg(json_build_object('pid', pid, 'user', coalesce(usename, '?'), 'seconds', extract(epoch FROM now() - xact_start)::int))
     FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND pid <> pg_backend_pid())::text AS open,
  (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'S' AND ${isUserSchema})::text AS sequences,
  (SELECT json_agg(c.oid::regclass::text) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE ${isUserSchema} AND CASE WHEN c.relkind = 'S' THEN NOT has_sequence_privilege(c.oid, 'SELECT') END)::text AS unreadable,
  (SELECT rolsuper OR rolreplication FROM pg_roles WHERE rolname = current_user)::text AS replicate,
  coalesce((SELECT pg_has_role(oid, 'MEMBER') FROM pg_roles WHERE rolname = 'rds_replication'), false)::text AS rds,
  has_database_privilege(current_database(), 'CREATE')::text AS may_create,
  pg_is_in_recovery()::text AS standby,
  (SELECT count(*) FROM pg_largeobject_metadata)::text AS large_objects,
  (SELECT pg_encoding_to_char(encoding) FROM pg_database WHERE datname = current_database()) AS encoding,
  (SELECT json_agg(json_build_object('name', extname, 'version', extversion)) FROM pg_extension)::text AS extensions,
  (SELECT json_agg(one) FROM (SELECT json_build_object('name', name, 'versions', json_agg(version)) AS one
     FROM pg_available_extension_versions GROUP BY name) x)::text AS available,
  (SELECT json_agg(rolname) FROM pg_roles)::text AS roles,
  (SELECT json_agg(DISTINCT r.rolname) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     CROSS JOIN LATERAL (SELECT c.relowner AS oid UNION SELECT (aclexplode(c.relacl)).grantee) used
     JOIN pg_roles r ON r.oid = used.oid WHERE ${isUserSchema})::text AS used_roles,
  (SELECT json_agg(DISTINCT r.rolname) FROM (${ownersOf('true')}) o JOIN pg_roles r ON r.oid = o.owner)::text AS owners,
  (SELECT json_agg(DISTINCT r.rolname) FROM (${ownersOf(`n.nspname = 'public'`)}) o JOIN pg_roles r ON r.oid = o.owner)::text AS public_owners,
  (SELECT json_agg(rolname) FROM pg_roles WHERE pg_has_role(oid,
     CASE WHEN current_setting('server_version_num')::int >= 160000 THEN 'SET' ELSE 'MEMBER' END))::text AS settable,
  (SELECT json_agg(r.rolname) FROM pg_roles r JOIN pg_namespace n ON n.nspname = 'public'
    WHERE has_schema_privilege(r.oid, n.oid, 'CREATE'))::text AS public_creators,
  ((SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
     WHERE c.relkind IN ('v', 'm', 'S', 'c') AND ${isUserSchema} AND ${notOfExtension('pg_class', 'c.oid')})
   + (SELECT count(*) FROM pg_proc p JOIN pg_namespace n ON n.oid = p.pronamespace
     WHERE ${isUserSchema} AND ${notOfExtension('pg_proc', 'p.oid')})
   + (SELECT count(*) FROM pg_type t JOIN pg_namespace n ON n.oid = t.typnamespace
     WHERE t.typtype IN ('d', 'e', 'r') AND ${isUserSchema} AND ${notOfExtension('pg_type', 't.oid')}))::text AS others,
  (SELECT json_agg(c.oid::regclass::text) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind = 'm' AND ${isUserSchema})::text AS matviews,
  (SELECT json_agg(DISTINCT t.oid::regclass::text) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid
     CROSS JOIN LATERAL (SELECT i.inhrelid AS oid UNION SELECT i.inhparent) t
    WHERE NOT c.relispartition AND c.relkind = 'r')::text AS inheriting,
  (SELECT json_agg(json_build_object('name', o.conname, 'table', cn.nspname || '.' || c.relname,
       'parent', pn.nspname || '.' || p.relname,
       'columns', (SELECT json_agg(a.attname ORDER BY k.place) FROM unnest(o.conkey) WITH ORDINALITY k(n, place)
                     JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = k.n),
       'parentColumns', (SELECT json_agg(a.attname ORDER BY k.place) FROM unnest(o.confkey) WITH ORDINALITY k(n, place)
                     JOIN pg_attribute a ON a.attrelid = p.oid AND a.attnum = k.n)))
     FROM pg_constraint o JOIN pg_class c ON c.oid = o.conrelid JOIN pg_namespace cn ON cn.oid = c.relnamespace
     JOIN pg_class p ON p.oid = o.confrelid JOIN pg_namespace pn ON pn.oid = p.relnamespace
    WHERE o.contype = 'f' AND o.conparentid = 0)::text AS foreign_keys`

const list = <T>(row: TextRow, name: string): T[] =>
  row[name] ? ((JSON.parse(row[name]) as T[] | null) ?? []) : []

async function mayUseReplicaRole(client: HostClient): Promise<boolean> {
  try {
    await client.query('SET session_replication_role = replica')
    await client.query('RESET session_replication_role')
    return true
  } catch {
    return false
  }
}

export async function readServerFacts(client: HostClient): Promise<ServerFacts> {
  const [row] = (await adminQuery(client, factsQuery)) as [TextRow]
  const number = (name: string): number => Number(row[name])
  const truth = (name: string): boolean => row[name] === 'true'
  return {
    version: number('version'),
    user: row['user'] ?? '',
    database: row['database'] ?? '',
    isManaged: truth('managed'),
    walLevel: row['wal_level'] ?? '',
    maxSlots: number('max_slots'),
    freeSlots: number('slots'),
    maxSenders: number('max_senders'),
    freeSenders: number('senders'),
    maxConnections: number('max_connections'),
    freeConnections: number('connections'),
    maxPreparedTransactions: number('max_prepared'),
    maxSlotWalKeepMb: Number(row['keep_mb'] ?? -1),
    idleSlotTimeoutS: number('idle_timeout'),
    walBytesPerSec: row['wal_rate'] == null ? undefined : number('wal_rate'),
    preparedTransactions: list(row, 'prepared'),
    oldTransactions: list(row, 'open'),
    unreadableSequences: list(row, 'unreadable'),
    sequences: number('sequences'),
    mayReplicate: truth('replicate') || truth('rds'),
    mayCreate: truth('may_create'),
    isStandby: truth('standby'),
    largeObjects: number('large_objects'),
    encoding: row['encoding'] ?? '',
    mayUseReplicaRole: await mayUseReplicaRole(client),
    extensions: list(row, 'extensions'),
    availableExtensions: list(row, 'available'),
    roles: list(row, 'roles'),
    usedRoles: list(row, 'used_roles'),
    owners: list(row, 'owners'),
    ownersInPublic: list(row, 'public_owners'),
    settableRoles: list(row, 'settable'),
    creatorsInPublic: list(row, 'public_creators'),
    otherObjects: number('others'),
    materializedViews: list(row, 'matviews'),
    inheriting: list(row, 'inheriting'),
    foreignKeys: list(row, 'foreign_keys'),
  }
}
