/**
 * The end of a move that takes shards away: on each shard that stays the rows that have come are put into the tables that
 * clients see, in one transaction, which is committed behind the decision and before anybody reads again.
 */
import { engineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { quoteLiteral } from '../../pg/sql-names.js'
import { activate } from '../cutover/epoch-store.js'
import type { MovePlan, MoveTable } from '../move-table.js'
import { dropGuards } from '../schema/copy-schema.js'
import { sequencesAhead } from '../schema/sequences.js'
import { openShard, placeOf, type ReshardSide, withShard } from '../side.js'
import { arrivals, columnList } from './incoming.js'
import { forEver, runWithin, type TimeLeft } from './run-within.js'

export interface TakingIn {
  readonly source: ReshardSide
  readonly target: ReshardSide
  readonly plan: MovePlan
  readonly run: string
}

const DONE = 'taken in'

const takeSql = (table: MoveTable): string => {
  const columns = columnList(table)
  return `INSERT INTO ${table.sqlName} (${columns}) OVERRIDING SYSTEM VALUE SELECT ${columns} FROM ${table.targetName};`
}

/** Connections for `takeIn`, one a shard. */
export async function openTakers(target: ReshardSide): Promise<HostClient[]> {
  const ends = await Promise.allSettled(target.shards.map((shard) => openShard(shard)))
  const failed = ends.find((end) => end.status === 'rejected')
  const opened = ends.flatMap((end) => (end.status === 'fulfilled' ? [end.value] : []))
  if (!failed) return opened
  await Promise.all(opened.map((client) => client.end().catch(() => undefined)))
  throw failed.reason
}

/** Opens a transaction on each shard in which all rows are there and numbers are drawn ahead of those of the old side. */
export async function takeIn(
  clients: readonly HostClient[],
  move: TakingIn,
  left: TimeLeft,
): Promise<void> {
  const sequences = await sequencesAhead(move.source.whole ?? move.source, move.target, move.plan)
  await settled(clients.map((client, shard) => refuseUndecided(client, move.target, shard)))
  await settled(
    clients.map((client, shard) => takeInto(client, move, sequences[shard] as string, left)),
  )
}

/** Whose fate a shard that leaves may know would be asked there no more. @throws RESHARD_BLOCKED */
async function refuseUndecided(
  client: HostClient,
  target: ReshardSide,
  shard: number,
): Promise<void> {
  const rows = await adminQuery(
    client,
    'SELECT gid FROM pg_prepared_xacts WHERE database = current_database() LIMIT 10',
  )
  if (rows.length === 0) return
  const holders = rows.map(({ gid }) => `prepared transaction ${gid}`).join(', ')
  const server = placeOf(target.shards[shard] as (typeof target.shards)[number])
  throw engineError('RESHARD_BLOCKED', { server, holders })
}

async function takeInto(
  client: HostClient,
  { plan, run }: TakingIn,
  sequences: string,
  left: TimeLeft,
): Promise<void> {
  // Rows come from where they were checked: triggers and foreign keys are not to act on it.
  await adminQuery(
    client,
    'BEGIN; SET LOCAL synchronous_commit = on; SET LOCAL session_replication_role = replica',
  )
  // Guards know the old map.
  const done = `INSERT INTO pgshard.reshard_done (run, what) VALUES (${quoteLiteral(run)}, ${quoteLiteral(DONE)});`
  const rows = arrivals(plan).map(takeSql)
  await runWithin(client, [dropGuards, ...rows, `${sequences} ${done}`], left)
}

/** Behind the decision: the rows committed, then the new side serves. Idempotent. */
export async function settleTakenIn(
  move: TakingIn,
  open: readonly HostClient[] | undefined,
  point: ((name: string) => Promise<void>) | undefined,
): Promise<void> {
  for (const [shard, client] of (open ?? []).entries()) {
    // What was lost is done again below.
    await adminQuery(client, 'COMMIT').catch(() => undefined)
    if (shard === 0) await point?.('half-settled')
  }
  let sequences: readonly string[] | undefined
  for (const [number, shard] of move.target.shards.entries()) {
    await withShard(shard, async (client) => {
      const [done] = await adminQuery(
        client,
        'SELECT 1 AS found FROM pgshard.reshard_done WHERE run = $1 AND what = $2',
        [move.run, DONE],
      )
      if (done) return
      sequences ??= await sequencesAhead(move.source.whole ?? move.source, move.target, move.plan)
      await takeInto(client, move, sequences[number] as string, forEver)
      await adminQuery(client, 'COMMIT')
    })
  }
  await point?.('settled')
  await activate(move.target)
}

/** Waits for all, then fails as the first that failed did. */
async function settled(works: readonly Promise<void>[]): Promise<void> {
  for (const end of await Promise.allSettled(works)) if (end.status === 'rejected') throw end.reason
}
