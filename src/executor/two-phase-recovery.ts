/**
 * Brings transactions over several shards to their end when the process that ran them has gone: by any process, at any
 * time, as often as one likes. The deciding shard is asked; where it has no decision, an abort row is written first, so
 * that a late decider fails on it.
 */
import type { ShardId } from '../sharding/shard-set.js'
import { finishPrepared } from './two-phase.js'
import {
  firstRow,
  gidOf,
  parseGid,
  type TransactionName,
  type TwoPhaseIdentity,
  type WithServer,
} from './two-phase-identity.js'

/** Younger transactions are left to who runs them. */
export const RECOVERY_GRACE_MS = 3000

export interface RecoveryOptions {
  readonly identity: TwoPhaseIdentity
  readonly withServer: WithServer
  /** Default 3000. */
  readonly graceMs?: number
}

export interface RecoveryReport {
  readonly committed: number
  readonly rolledBack: number
  /** Prepared transactions that stay: too young, of another user, or a shard could not be reached. */
  readonly left: readonly {
    readonly shard: ShardId
    readonly gid: string
    readonly reason: string
    readonly ageMs: number
  }[]
  /** Decisions removed because every shard has carried them out. */
  readonly settled: number
  readonly abortsRemoved: number
  /** Shards that could not be asked. */
  readonly unreachable: readonly { readonly shard: ShardId; readonly reason: string }[]
}

interface Found {
  readonly shard: ShardId
  readonly gid: string
  readonly name: TransactionName
  readonly isOld: boolean
  readonly ageMs: number
  /** We are its owner, or a superuser. */
  readonly isOurs: boolean
}

const reasonOf = (error: unknown): string =>
  error instanceof Error ? error.message : String(error)

/** One pass over all shards. Never throws: what failed is in the report. */
export async function recoverPrepared(options: RecoveryOptions): Promise<RecoveryReport> {
  const unreachable: { shard: ShardId; reason: string }[] = []
  const onEach = <T>(work: (shard: ShardId) => Promise<T[]>): Promise<T[]> =>
    Promise.all(
      options.identity.shardIds.map(async (_, shard) => {
        try {
          return await work(shard)
        } catch (error) {
          if (unreachable.every((one) => one.shard !== shard)) {
            unreachable.push({ shard, reason: reasonOf(error) })
          }
          return []
        }
      }),
    ).then((lists) => lists.flat())

  const found = await onEach((shard) => findPrepared(shard, options))
  const ends = await Promise.all(found.map((one) => resolveOne(one, options)))
  const settled = await onEach(async (shard) => [await settle(shard, options)])
  const aborts = await onEach(async (shard) => [await sweepAborts(shard, options)])
  const sum = (numbers: readonly number[]) => numbers.reduce((a, b) => a + b, 0)
  return {
    committed: ends.filter((end) => end === 'commit').length,
    rolledBack: ends.filter((end) => end === 'abort').length,
    left: found.flatMap((one, i) => {
      const end = ends[i]
      if (typeof end !== 'object') return []
      return [{ shard: one.shard, gid: one.gid, reason: end.left, ageMs: one.ageMs }]
    }),
    settled: sum(settled),
    abortsRemoved: sum(aborts),
    unreachable,
  }
}

function findPrepared(shard: ShardId, options: RecoveryOptions): Promise<Found[]> {
  const { clusterId } = options.identity
  const graceMs = options.graceMs ?? RECOVERY_GRACE_MS
  return options.withServer(shard, async (server) => {
    const results = await server.query(`
      SELECT x.gid, x.prepared <= pg_catalog.clock_timestamp() - interval '${graceMs} ms',
        x.owner = current_user OR r.rolsuper,
        pg_catalog.floor(1000 * extract(epoch FROM pg_catalog.clock_timestamp() - x.prepared))
      FROM pg_catalog.pg_prepared_xacts x, pg_catalog.pg_roles r
      WHERE x.database = pg_catalog.current_database() AND r.rolname = current_user
        AND pg_catalog.starts_with(x.gid, 'pgshard_${clusterId}_')
      ORDER BY x.prepared`)
    return (results.at(-1)?.rows ?? []).flatMap(([gid, isOld, isOurs, age]) => {
      const name = parseGid(clusterId, gid ?? '')
      if (!name || !gid) return []
      const ageMs = Number(age)
      return [{ shard, gid, name, ageMs, isOld: isOld === 't', isOurs: isOurs === 't' }]
    })
  })
}

type End = 'commit' | 'abort' | { readonly left: string }

async function resolveOne(one: Found, options: RecoveryOptions): Promise<End> {
  if (!one.isOld) return { left: 'it is younger than the grace time' }
  if (!one.isOurs) return { left: 'it belongs to another user' }
  const deciding = options.identity.shardIds.indexOf(one.name.decidingId)
  if (deciding < 0) return { left: `its deciding shard ${one.name.decidingId} is not configured` }
  try {
    // Committed before anything is rolled back: the abort row must stand when a late decider comes.
    const outcome = await options.withServer(deciding, async (server) => {
      const [answer] = await firstRow(server, `SELECT pgshard.abort('${one.gid}')`)
      return answer === 'commit' ? ('commit' as const) : ('abort' as const)
    })
    const verb = outcome === 'commit' ? 'COMMIT' : 'ROLLBACK'
    await options.withServer(one.shard, (server) => finishPrepared(server, verb, one.gid))
    return outcome
  } catch (error) {
    return { left: reasonOf(error) }
  }
}

/**
 * Removes decisions that every shard has carried out. The decisions are read first and the prepared transactions after:
 * all were prepared before the decision, so one that is not there any more has been committed.
 */
async function settle(shard: ShardId, options: RecoveryOptions): Promise<number> {
  const { identity, withServer } = options
  const graceMs = options.graceMs ?? RECOVERY_GRACE_MS
  const decisions = await withServer(shard, async (server) => {
    const results = await server.query(`
      SELECT pg_catalog.encode(id, 'hex'), pg_catalog.array_to_string(shard_ids, ',')
      FROM pgshard.decision
      WHERE outcome = 'commit' AND decided_at <= pg_catalog.clock_timestamp() - interval '${graceMs} ms'`)
    return (results.at(-1)?.rows ?? []).map(([key, ids]) => ({
      key: key ?? '',
      shardIds: (ids ?? '').split(',').filter(Boolean).map(Number),
    }))
  })
  let settled = 0
  for (const { key, shardIds } of decisions) {
    const waits = await Promise.all(
      shardIds.map((id) => isPrepared(identity.shardIds.indexOf(id), shard, key, options)),
    )
    if (waits.includes(true)) continue
    await withServer(shard, (server) => server.query(`SELECT pgshard.settle('\\x${key}')`))
    settled++
  }
  return settled
}

/** Whether the shard `holder` still has its part of a transaction for which `deciding` decided; a shard that is gone counts as having it. */
async function isPrepared(
  holder: ShardId,
  deciding: ShardId,
  key: string,
  options: RecoveryOptions,
): Promise<boolean> {
  const { clusterId, shardIds } = options.identity
  if (holder < 0) return true
  const gid = gidOf(clusterId, {
    decidingId: shardIds[deciding] as number,
    key,
    shardId: shardIds[holder] as number,
  })
  return options.withServer(holder, async (server) => {
    const [there] = await firstRow(
      server,
      `SELECT EXISTS (SELECT FROM pg_catalog.pg_prepared_xacts
        WHERE gid = '${gid}' AND database = pg_catalog.current_database())`,
    )
    return there === 't'
  })
}

function sweepAborts(shard: ShardId, options: RecoveryOptions): Promise<number> {
  return options.withServer(shard, async (server) => {
    const [removed] = await firstRow(server, 'SELECT pgshard.sweep_aborts()')
    return Number(removed ?? 0)
  })
}
