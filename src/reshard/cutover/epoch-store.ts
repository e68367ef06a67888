/**
 * The epochs of the two sides of a move. The truth is the row on the first shard of the side that takes over: its commit
 * of a higher epoch is the point of no return. Each shard of the other side keeps a copy that says where the truth is.
 */
import { randomUUID } from 'node:crypto'
import { engineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { quoteLiteral, quoteName } from '../../pg/sql-names.js'
import {
  DISCOVER_MS,
  HEARTBEAT_MS,
  hasTopologySql,
  readTopologyRow,
  type TopologyRow,
  topologyColumns,
  topologySql,
  topologyTables,
} from '../../topology/epoch.js'
import { onEachShard, placeOf, type ReshardSide, withShard } from '../side.js'

/** After the registry was made, proxies with clients have found it within this time. */
export const REGISTRY_FOUND_MS = DISCOVER_MS + HEARTBEAT_MS + 1000

/** As in setup: whoever makes objects of the schema holds it. */
const SCHEMA_LOCK = 7_307_498_301

const firstOf = (side: ReshardSide) => side.shards[0] as (typeof side.shards)[number]

/** The row of a side; undefined before anybody has prepared it. */
export async function readEpoch(client: HostClient): Promise<TopologyRow | undefined> {
  const [found] = await adminQuery(client, `${hasTopologySql} AS found`)
  if (found?.['found'] !== 't') return undefined
  const [row] = await adminQuery(client, topologySql)
  const json = row && Object.values(row)[0]
  return json ? readTopologyRow(json) : undefined
}

export const readEpochOf = (side: ReshardSide): Promise<TopologyRow | undefined> =>
  withShard(firstOf(side), readEpoch)

/**
 * Makes the rows and the registries of both sides, and says that `run` is about to move the source. Idempotent.
 * True when a registry was made just now: proxies have yet to find it.
 * @throws RESHARD_TARGET_ACTIVE
 */
export async function prepareEpochs(
  source: ReshardSide,
  target: ReshardSide,
  run: string,
): Promise<boolean> {
  if (target.isStaged) return prepareStaged(source, target, run)
  const serving = await readEpochOf(target)
  if (serving?.active && serving.epoch > 0) {
    throw engineError('RESHARD_TARGET_ACTIVE', { to: target.name, epoch: serving.epoch })
  }
  await settleEarlier(source)
  const isShared = target.whole !== undefined
  const how = { run, servedAs: source.name, isShared }
  const isFresh = await prepareSide(source, how, '')
  // A higher epoch than the source's would pass for a decision.
  const level = isShared ? `, epoch = ${(await readEpochOf(source))?.epoch ?? 0}` : ''
  // The target waits for its turn; one that was left before says so until it has taken over.
  await prepareSide(target, how, `, active = false${level}`)
  return isFresh
}

/**
 * Where shards are taken away those that leave speak for the side of now, and those that stay are the new side, which
 * waits for its turn: who reads the first shard looks further for the row of the database as it is. Shards that stay say
 * who speaks for them, so that a run that is given up can be undone by `reopenStaged`.
 */
async function prepareStaged(
  source: ReshardSide,
  target: ReshardSide,
  run: string,
): Promise<boolean> {
  const here = await readEpochOf(target)
  const isBegun = here?.isShared === true && here.move === run
  if (!isBegun && source.whole) await settleEarlier(source.whole)
  const how = { run, servedAs: source.name, isShared: true }
  const isFresh = await prepareSide(source, how, '')
  const serving = await readEpochOf(source)
  const state =
    `, active = false, fenced = false, epoch = ${serving?.epoch ?? 0},` +
    ` truth_side = ${quoteLiteral(serving?.side ?? '')}, truth = ${quoteLiteral(placeOf(firstOf(source)))}`
  const side = isBegun ? here.side : randomUUID()
  return (await prepareSide(target, { ...how, side }, state)) || isFresh
}

/** Shards that were to stay alone are of the old side again. Idempotent; only while nothing was decided. */
export async function reopenStaged(source: ReshardSide): Promise<void> {
  if (source.whole) await settleEarlier(source.whole)
}

/** After a move between sides with shards in common each of these has two rows of one side: from now on one. */
async function settleEarlier(side: ReshardSide): Promise<void> {
  const first = await readEpochOf(side)
  if (!first?.isShared || first.active) return
  const rows = await onEachShard(side, readEpoch)
  const truth = rows.find((row) => row?.side === first.truthSide && row?.active)
  if (!truth) throw engineError('RESHARD_UNSETTLED', { database: side.name })
  // The first shard first: who reads it needs no other then.
  for (const shard of side.shards) {
    await withShard(shard, async (client) => {
      await adminQuery(
        client,
        `UPDATE pgshard.topology SET side = ${quoteLiteral(truth.side)}, epoch = ${truth.epoch}, active = true,
           fenced = false, shared = false, truth_side = NULL, truth = NULL`,
      )
    })
  }
}

async function prepareSide(
  side: ReshardSide,
  {
    run,
    servedAs,
    isShared,
    side: given,
  }: { run: string; servedAs: string; isShared: boolean; side?: string },
  state: string,
): Promise<boolean> {
  let name = given
  let isFresh = false
  for (const shard of side.shards) {
    await withShard(shard, async (client) => {
      const before = await readEpoch(client)
      isFresh ||= before === undefined
      await adminQuery(client, makeSql(side.roles ?? []))
      name ??= (await readEpoch(client))?.side
      await adminQuery(
        client,
        `UPDATE pgshard.topology SET side = ${quoteLiteral(name ?? '')}, move = ${quoteLiteral(run)},
           served_as = ${quoteLiteral(servedAs)}, shared = ${isShared}${state}`,
      )
    })
  }
  return isFresh
}

const makeSql = (roles: readonly string[]): string => `
BEGIN; SELECT pg_advisory_xact_lock(${SCHEMA_LOCK});
CREATE SCHEMA IF NOT EXISTS pgshard; GRANT USAGE ON SCHEMA pgshard TO PUBLIC;
${topologyTables}${topologyColumns}
GRANT SELECT ON pgshard.topology, pgshard.proxy TO PUBLIC;
${roles
  .map(
    (role) =>
      `DO $grant$ BEGIN GRANT SELECT, INSERT, UPDATE, DELETE ON pgshard.proxy TO ${quoteName(role)};
       EXCEPTION WHEN undefined_object THEN NULL; END $grant$;`,
  )
  .join('\n')}
COMMIT;`

/** Says to proxies that this side is left within moments: they make the other one ready. */
export const announceSql = 'UPDATE pgshard.topology SET preparing_at = now()'

/** Part of the transaction that fences a shard. */
export const closeSql = (run: string, truth: { side: string; where: string }): string =>
  `UPDATE pgshard.topology SET active = false, fenced = true, move = ${quoteLiteral(run)}, ` +
  `truth_side = ${quoteLiteral(truth.side)}, truth = ${quoteLiteral(truth.where)}, changed_at = now(), preparing_at = NULL;`

/** Part of the transaction that lifts a fence: as before the cutover. */
export const reopenSql =
  'UPDATE pgshard.topology SET active = true, fenced = false, truth_side = NULL, truth = NULL, changed_at = now(), preparing_at = NULL;'

/** The side that is to take over, as the other one's rows name it. */
export async function truthOf(target: ReshardSide): Promise<{ side: string; where: string }> {
  const row = await readEpochOf(target)
  return { side: row?.side ?? '', where: placeOf(firstOf(target)) }
}

/** The point of no return: the target is the truth from the commit on. One text is one transaction. */
export function decideSql(
  epoch: number,
  run: string,
  facts: Readonly<Record<string, unknown>> | undefined,
): string {
  const note = facts
    ? `UPDATE pgshard.reshard_run SET facts = facts || ${quoteLiteral(JSON.stringify(facts))}::jsonb WHERE run = ${quoteLiteral(run)};`
    : ''
  return `SET LOCAL synchronous_commit = on; ${note} UPDATE pgshard.topology SET epoch = ${epoch}, active = NOT shared,
    fenced = false, truth_side = NULL, truth = NULL, changed_at = now() WHERE epoch < ${epoch}`
}

/** Part of the transaction that deletes from a shard what has moved: it is one of the new side's. */
export const unfenceSql = 'UPDATE pgshard.topology SET fenced = false, changed_at = now();'

/** Where sides have shards in common the decided side serves only when what has moved is gone from the old shards. */
export async function activate(target: ReshardSide): Promise<void> {
  await onEachShard(target, async (client) => {
    await adminQuery(client, 'UPDATE pgshard.topology SET active = true WHERE NOT active')
  })
}

/** What follows the decision: the other shards, and the copies of the side that was left. Idempotent. */
export async function spreadEpoch(
  left: ReshardSide,
  taken: ReshardSide,
  epoch: number,
): Promise<void> {
  await onEachShard(taken, async (client) => {
    await adminQuery(
      client,
      `UPDATE pgshard.topology SET epoch = ${epoch}, active = true, fenced = false, truth_side = NULL, truth = NULL`,
    )
  })
  await onEachShard(left, async (client) => {
    await adminQuery(client, `UPDATE pgshard.topology SET epoch = ${epoch} WHERE NOT active`)
  })
}

/** It does not serve yet, but there is no way back: see `activate`. */
const isDecided = (from: TopologyRow, to: TopologyRow): boolean =>
  to.isShared && to.epoch > from.epoch

/** Where a cutover from one side to the other stands. */
type CutoverStanding = 'open' | 'fenced' | 'switched'

export async function cutoverStanding(
  source: ReshardSide,
  target: ReshardSide,
): Promise<CutoverStanding> {
  const [from, to] = await Promise.all([readEpochOf(source), readEpochOf(target)])
  if (!from || !to) return 'open'
  const isTaken = from.truthSide === to.side && to.epoch >= from.epoch
  if (isTaken && (to.active || isDecided(from, to))) return 'switched'
  return from.fenced || from.truthSide === to.side ? 'fenced' : 'open'
}
