/**
 * Connections of our own to the shards for one look at their locks: those of the pools may all be stuck. Asks who waits for
 * whom, prepared transactions included.
 */
import type { ShardWaits } from '../../executor/deadlock-graph.js'
import type { OpenServer } from '../../pool/definition.js'
import type { UserPools } from '../../pool/user-pools.js'
import type { ServerConnection } from '../../server/server-connection.js'
import { openPastPool } from '../databases/ask-primary.js'

export class ShardConnections {
  readonly #pools: UserPools
  readonly #openServer: OpenServer
  readonly #open = new Map<number, Promise<ServerConnection>>()

  constructor(pools: UserPools, openServer: OpenServer) {
    this.#pools = pools
    this.#openServer = openServer
  }

  /** @throws what an opening does */
  to(shard: number): Promise<ServerConnection> {
    const open = this.#open.get(shard) ?? openPastPool(this.#pools, shard, this.#openServer)
    this.#open.set(shard, open)
    return open
  }

  close(): void {
    for (const open of this.#open.values()) {
      open.then(
        (server) => server.close(),
        () => undefined,
      )
    }
  }
}

/** What makes two locks one. */
const OBJECT = [
  ...['locktype', 'database', 'relation', 'page', 'tuple', 'virtualxid', 'transactionid'],
  ...['classid', 'objid', 'objsubid'],
]
const columns = (of: string): string => OBJECT.map((column) => `${of}.${column}`).join(', ')

/**
 * pg_blocking_pids says 0 of a prepared transaction. In pg_locks it has no pid; what it holds there has one
 * virtualtransaction ("-1/…" after a restart, before that the one it had while it ran), its own transaction id among it.
 */
const waitsOf = (pids: readonly number[]): string => `WITH RECURSIVE w (pid) AS (
    SELECT pg_catalog.unnest('{${pids.join(',')}}'::integer[])
    UNION SELECT pg_catalog.unnest(pg_catalog.pg_blocking_pids(w.pid)) FROM w WHERE w.pid > 0)
  SELECT w.pid, pg_catalog.array_to_string(b.pids, ','), CASE WHEN 0 = ANY (b.pids) THEN (
    SELECT pg_catalog.string_agg(DISTINCT x.gid, E'\\n')
    FROM pg_catalog.pg_locks a
    JOIN pg_catalog.pg_locks h ON (${columns('h')}) IS NOT DISTINCT FROM (${columns('a')})
    JOIN pg_catalog.pg_locks t ON t.virtualtransaction = h.virtualtransaction
    JOIN pg_catalog.pg_prepared_xacts x ON x.transaction = t.transactionid
    WHERE a.pid = w.pid AND NOT a.granted AND h.granted AND h.pid IS NULL AND t.pid IS NULL) END
  FROM w, LATERAL (SELECT pg_catalog.pg_blocking_pids(w.pid)) b (pids) WHERE w.pid > 0`

export async function askWhoWaits(
  server: ServerConnection,
  shard: number,
  pids: readonly number[],
): Promise<ShardWaits> {
  const results = await server.query(waitsOf(pids))
  return {
    shard,
    waits: (results.at(-1)?.rows ?? []).map(([pid, blockers, gids]) => ({
      pid: Number(pid),
      blockers: (blockers ?? '').split(',').filter(Boolean).map(Number),
      prepared: (gids ?? '').split('\n').filter(Boolean).map(nameOf),
    })),
  }
}

/** Of one of ours the key, which its proxy knows it by. */
const nameOf = (gid: string): string => /^pgshard_.*_([0-9a-f]{32})_\d+$/.exec(gid)?.[1] ?? gid
