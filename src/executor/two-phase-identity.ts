/** Who the shards are to two-phase commit, and whether they allow it. Read from schema pgshard (`pgshard setup` makes it). */
import { engineError } from '../errors/engine-error.js'
import type { ShardId } from '../sharding/shard-set.js'

/** As much of a ServerConnection as is used here: one simple query, its rows as text. */
export interface TwoPhaseServer {
  query(
    sql: string,
  ): Promise<
    readonly { readonly rows: readonly (readonly (string | null)[])[]; readonly tag: string }[]
  >
}

/** Runs `work` on a connection to the shard's primary that is in no transaction, as the pool's user. */
export type WithServer = <T>(
  shard: ShardId,
  work: (server: TwoPhaseServer) => Promise<T>,
) => Promise<T>

export interface TwoPhaseIdentity {
  readonly clusterId: string
  /** Ids that never change, by shard number. */
  readonly shardIds: readonly number[]
}

/** What the shards let a user do. */
export interface TwoPhaseUser extends TwoPhaseIdentity {
  /** The first shard on which it may not recover; undefined: it may on all. */
  readonly unrecoverable: ShardId | undefined
  /** May end what others have prepared, on every shard. */
  readonly isSuperuser: boolean
}

const facts = `SELECT to_regclass('pgshard.shard') IS NOT NULL,
  current_setting('max_prepared_transactions')::int > 0,
  to_regprocedure('pgshard.abort(text)') IS NOT NULL
    AND has_schema_privilege('pgshard', 'USAGE')
    AND has_function_privilege(to_regprocedure('pgshard.abort(text)'), 'EXECUTE'),
  (SELECT rolsuper FROM pg_catalog.pg_roles WHERE rolname = current_user)`

/** hard-parts §3.5: who prepares must be sure that somebody recovers. */
export const notRecoverable = (database: string, shard: ShardId): Error =>
  engineError('TWO_PHASE_NOT_READY', {
    database,
    reason: `shard ${shard} does not let this user recover`,
  })

/**
 * Reads the identity of all shards.
 * @throws TWO_PHASE_NOT_READY with the first reason why this user may not write on several shards
 */
export async function readTwoPhaseIdentity(
  database: string,
  shardCount: number,
  withServer: WithServer,
): Promise<TwoPhaseIdentity> {
  const user = await readTwoPhaseUser(database, shardCount, withServer)
  if (user.unrecoverable !== undefined) throw notRecoverable(database, user.unrecoverable)
  return user
}

/** The same of a user for whom another may recover. @throws TWO_PHASE_NOT_READY */
export async function readTwoPhaseUser(
  database: string,
  shardCount: number,
  withServer: WithServer,
): Promise<TwoPhaseUser> {
  const refuse = (reason: string) => engineError('TWO_PHASE_NOT_READY', { database, reason })
  const found = await Promise.all(
    Array.from({ length: shardCount }, (_, shard) =>
      withServer(shard, async (server) => {
        const [hasSchema, mayPrepare, mayRecover, isSuperuser] = await firstRow(server, facts)
        if (mayPrepare !== 't') throw refuse(`shard ${shard} has max_prepared_transactions = 0`)
        if (hasSchema !== 't') throw refuse(`shard ${shard} has no schema pgshard`)
        const [id, clusterId] = await firstRow(
          server,
          'SELECT id, cluster_id FROM pgshard.shard WHERE is_here',
        )
        if (!id || !clusterId) throw refuse(`shard ${shard} has no id`)
        const rights = { mayRecover: mayRecover === 't', isSuperuser: isSuperuser === 't' }
        return { id: Number(id), clusterId, ...rights }
      }),
    ),
  )
  const clusterId = found[0]?.clusterId ?? ''
  const shardIds = found.map((one) => one.id)
  if (found.some((one) => one.clusterId !== clusterId)) {
    throw refuse('its shards belong to different clusters')
  }
  if (new Set(shardIds).size < shardIds.length) throw refuse('two shards have the same id')
  const first = found.findIndex(({ mayRecover }) => !mayRecover)
  return {
    clusterId,
    shardIds,
    unrecoverable: first < 0 ? undefined : first,
    isSuperuser: found.every((one) => one.isSuperuser),
  }
}

export async function firstRow(
  server: TwoPhaseServer,
  sql: string,
): Promise<readonly (string | null)[]> {
  const results = await server.query(sql)
  return results.at(-1)?.rows[0] ?? []
}

/** The parts of a gid. `key` is the head of the secret's hash, in hex. */
export interface TransactionName {
  readonly decidingId: number
  readonly key: string
  readonly shardId: number
}

/** `pgshard_<cluster>_<deciding shard's id>_<key>_<shard id>` */
export function gidOf(clusterId: string, name: TransactionName): string {
  return `pgshard_${clusterId}_${name.decidingId}_${name.key}_${name.shardId}`
}

/** undefined for a gid of somebody else. */
export function parseGid(clusterId: string, gid: string): TransactionName | undefined {
  const match = /^pgshard_([0-9a-f]{8})_(\d{1,9})_([0-9a-f]{32})_(\d{1,9})$/.exec(gid)
  if (!match || match[1] !== clusterId) return undefined
  return { decidingId: Number(match[2]), key: match[3] as string, shardId: Number(match[4]) }
}

/** SQLSTATE of an error that a server sent and after which it goes on: the statement had no effect. Else undefined. */
export function refusalState(error: unknown): string | undefined {
  const fields = (error as { fields?: Record<string, string> } | undefined)?.fields
  if (!fields || (fields['V'] ?? fields['S']) !== 'ERROR') return undefined
  return fields['C']
}

/** `undefined_object`: no prepared transaction has this gid (any more). */
export const GONE = '42704'
