/**
 * Read-your-writes (hard-parts §10): how far a client has seen each shard. After each request the server is asked, in
 * the same write, where it stands; the client's next read may go to a replica only when that has replayed as much.
 * Where no question could follow (COPY, several servers, an open transaction), the next read goes to the primary.
 */
import type { Expectation } from '../../executor/relay.js'
import type { Effects } from '../../plan/effects.js'
import { isBeyond, type Position } from '../../pool/host-group.js'
import type { ShardPools } from '../../pool/shard-pools.js'
import { queryFrame, type ServerConnection } from '../../server/server-connection.js'
import { decodeDataRow } from '../../wire/backend-messages.js'

interface Held {
  readonly shard: number
  readonly server: ServerConnection
}

interface Completed {
  readonly effects: Effects
}

/** A primary says on which timeline it writes; of a replica that is known from elsewhere. */
const QUESTION = queryFrame(`SELECT CASE WHEN r THEN pg_catalog.pg_last_wal_replay_lsn()
  ELSE pg_catalog.pg_current_wal_insert_lsn() END OPERATOR(pg_catalog.-) '0/0'::pg_catalog.pg_lsn,
 CASE WHEN NOT r THEN ('x' OPERATOR(pg_catalog.||) pg_catalog.substr(pg_catalog.pg_walfile_name(
  pg_catalog.pg_current_wal_insert_lsn()), 1, 8))::pg_catalog.bit(32)::pg_catalog.int4 END
FROM (SELECT pg_catalog.pg_is_in_recovery() AS r OFFSET 0) s`)

export interface Outgoing {
  readonly pieces: Buffer[]
  readonly expectations: Expectation[]
  readonly syncs: number
}

export class SeenPositions {
  readonly #pools: ShardPools
  readonly #known = new Map<number, Position>()
  /** Shards of which more may have been seen than is known. */
  readonly #open = new Set<number>()

  constructor(pools: ShardPools) {
    this.#pools = pools
  }

  /** Where a read of the shard may go, and how far that must be. */
  wish(shard: number, role: 'primary' | 'any'): { role: 'primary' | 'any'; after?: Position } {
    if (role === 'primary' || this.#open.has(shard)) return { role: 'primary' }
    const after = this.#known.get(shard)
    return after ? { role, after } : { role }
  }

  /** Something is done on the shard; until the server has said where it stands nobody knows how far that was. */
  lose(shard: number): void {
    this.#open.add(shard)
  }

  /** The same request with the question behind it, when one can follow. */
  follow(
    held: Held,
    out: Outgoing,
    statements: readonly Completed[],
    isInTransaction: boolean,
  ): Outgoing {
    const last = out.expectations.at(-1)
    const isEnd = last && !last.skip && (last.kind === 'query' || last.kind === 'sync')
    if (!isEnd || out.syncs === 0 || !leavesNothingOpen(statements, isInTransaction)) return out
    const rows: Buffer[] = []
    const question: Expectation = {
      kind: 'query',
      skip: true,
      // The client's ReadyForQuery is the one behind the question.
      isLenient: true,
      rows: (buffer, start, end) => rows.push(Buffer.from(buffer.subarray(start, end))),
      done: () => this.#learn(held, Buffer.concat(rows)),
    }
    return {
      pieces: [...out.pieces, QUESTION],
      expectations: [...out.expectations.slice(0, -1), { ...last, holdsReady: true }, question],
      syncs: out.syncs + 1,
    }
  }

  #learn(held: Held, row: Buffer): void {
    const [lsn, timeline] = textsOf(row)
    if (lsn === undefined) return
    const here = this.#pools.positionOf(
      held.shard,
      held.server,
      BigInt(lsn),
      timeline === undefined ? undefined : Number(timeline),
    )
    if (!here) return
    const before = this.#known.get(held.shard)
    if (!before || isBeyond(here, before)) this.#known.set(held.shard, here)
    this.#open.delete(held.shard)
  }
}

/** After these no transaction is open, and the server takes another query behind them. */
function leavesNothingOpen(statements: readonly Completed[], isInTransaction: boolean): boolean {
  if (statements.some(({ effects }) => effects.copy !== undefined)) return false
  const ends = statements.flatMap(({ effects }) => effects.transaction ?? [])
  if (ends.some((one) => one.kind === 'begin' || ('chain' in one && one.chain))) return false
  return !isInTransaction || ends.some((one) => one.kind === 'commit' || one.kind === 'rollback')
}

/** Values of the first DataRow, as text; undefined for NULL. */
const textsOf = (row: Buffer): (string | undefined)[] =>
  row.length < 7
    ? []
    : decodeDataRow(row.subarray(5, 1 + row.readInt32BE(1))).map((value) =>
        value?.toString('latin1'),
      )
