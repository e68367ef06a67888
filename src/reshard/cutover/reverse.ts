/**
 * The way back: publications and slots on the new side, made before anybody writes there, and a login of its own on the
 * old side, which alone passes the fence. Nothing runs until someone follows it; only one direction is ever followed, so
 * that no change goes round.
 */
import { randomBytes } from 'node:crypto'
import type { Clock } from '../../base/clock.js'
import { engineError, toEngineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import { quoteLiteral, quoteName } from '../../pg/sql-names.js'
import { type Lsn, parseLsn } from '../../replication/lsn.js'
import { createSnapshotSlot } from '../../replication/slot.js'
import { Follower } from '../follow/follower.js'
import { ensureTargetTables } from '../journal/journal.js'
import { type MovePlan, planMove, tablesOf } from '../move-table.js'
import { readServerFacts } from '../preflight/server-facts.js'
import { readSourceTables, type SourceTable } from '../preflight/source-table.js'
import { type ReshardSide, withShard } from '../side.js'
import type { CutoverJournal, WayBack } from './cutover-options.js'
import { whyNoWayBack } from './way-back-checks.js'

const backRole = (run: string): string => `pgshard_${run}_back`
export const backName = (run: string): string => `pgshard_${run}_back`
const backSlot = (run: string, shard: number): string => `pgshard_${run}_back_${shard}`

/** A slot waits for the transactions that are open when it is made; nobody is paused then. */
const SLOT_TIMEOUT_MS = 120_000

/** The plan of the way back, from the tables as they stand on the new side. */
async function planBack(
  source: ReshardSide,
  target: ReshardSide,
): Promise<{ plan: MovePlan; tables: readonly SourceTable[] }> {
  const tables = await withShard(
    target.shards[0] as (typeof target.shards)[number],
    readSourceTables,
  )
  return { plan: planMove(target, source, tables), tables }
}

export function makeWayBack(
  source: ReshardSide,
  target: ReshardSide,
  journal: CutoverJournal,
  clock: Clock,
): WayBack {
  const { run } = journal
  const role = backRole(run)
  let marks: string[] = []
  return {
    role,
    arm: async () => {
      const { plan, tables } = await planBack(source, target)
      const reason = await whyNoWayBack(source, target, tables)
      if (reason !== undefined) {
        const names = { from: source.name, to: target.name, reason }
        throw engineError('RESHARD_NO_WAY_BACK', names)
      }
      try {
        await makeRole(source, journal, role, plan)
        await makeStreams(target, journal, plan, clock)
      } catch (error) {
        const names = { from: source.name, to: target.name, reason: toEngineError(error).message }
        throw engineError('RESHARD_NO_WAY_BACK', names, { cause: error })
      }
    },
    mark: async (targets) => {
      marks = await Promise.all(
        targets.map(async (client) => {
          const [row] = await adminQuery(client, 'SELECT pg_current_wal_insert_lsn()::text AS lsn')
          return row?.['lsn'] as string
        }),
      )
    },
    facts: () => ({ back: { from: marks } }),
  }
}

async function makeRole(
  source: ReshardSide,
  journal: CutoverJournal,
  role: string,
  plan: MovePlan,
): Promise<void> {
  for (const shard of source.shards.keys()) {
    await journal.register({ kind: 'role', side: 'source', shard, name: role })
  }
  const schemas = [...new Set(plan.tables.map(({ schema }) => schema))].map(quoteName).join(', ')
  const tables = plan.tables.map(({ sqlName }) => sqlName).join(', ')
  const name = quoteName(role)
  // One after the other: two sources may be databases of one server, which has its roles once.
  for (const target of source.shards) {
    await withShard(target, async (client) => {
      await ensureTargetTables(client)
      await adminQuery(
        client,
        `DO $role$ BEGIN
           IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = ${quoteLiteral(role)}) THEN
             CREATE ROLE ${name} LOGIN;
             IF (SELECT rolsuper FROM pg_roles WHERE rolname = current_user) THEN ALTER ROLE ${name} BYPASSRLS; END IF;
           END IF;
         END $role$;
         GRANT SET ON PARAMETER session_replication_role TO ${name};
         GRANT USAGE ON SCHEMA pgshard TO ${name};
         GRANT SELECT, INSERT, UPDATE, DELETE ON pgshard.reshard_progress, pgshard.reshard_copied TO ${name};
         ${plan.tables.length === 0 ? '' : `GRANT USAGE ON SCHEMA ${schemas} TO ${name}; GRANT SELECT, INSERT, UPDATE, DELETE, TRUNCATE ON ${tables} TO ${name};`}`,
      )
    })
  }
}

async function makeStreams(
  target: ReshardSide,
  journal: CutoverJournal,
  plan: MovePlan,
  clock: Clock,
): Promise<void> {
  const { run } = journal
  const publication = backName(run)
  for (const shard of target.shards.keys()) {
    await journal.register({ kind: 'publication', side: 'target', shard, name: publication })
    await journal.register({ kind: 'slot', side: 'target', shard, name: backSlot(run, shard) })
  }
  const ends = await Promise.allSettled(
    target.shards.map(async (server, shard) => {
      const tables = tablesOf(plan, shard).map(({ sqlName }) => `ONLY ${sqlName}`)
      const list = tables.length === 0 ? '' : ` FOR TABLE ${tables.join(', ')}`
      const name = backSlot(run, shard)
      const hasSlot = await withShard(server, async (client) => {
        const known = await adminQuery(client, 'SELECT FROM pg_publication WHERE pubname = $1', [
          publication,
        ])
        if (known.length === 0) {
          await adminQuery(client, `CREATE PUBLICATION ${quoteName(publication)}${list}`)
        }
        const slots = await adminQuery(
          client,
          'SELECT FROM pg_replication_slots WHERE slot_name = $1',
          [name],
        )
        return slots.length > 0
      })
      if (hasSlot) return
      const how = { name, temporary: false, timeoutMs: SLOT_TIMEOUT_MS, clock }
      await (await createSnapshotSlot(server, how)).release()
    }),
  )
  for (const end of ends) if (end.status === 'rejected') throw end.reason
}

/** Where the streams back begin, as the journal has it; undefined when none was armed. */
export function backMarks(facts: Readonly<Record<string, unknown>>): Lsn[] | undefined {
  const back = facts['back'] as { from?: string[] } | undefined
  return back?.from?.map(parseLsn)
}

/** Followers from the new side to the old one, not started. A password that nobody keeps is made for the login. */
export async function makeFollowersBack(
  source: ReshardSide,
  target: ReshardSide,
  run: string,
  marks: readonly Lsn[],
  clock: Clock,
): Promise<{ followers: Follower[]; plan: MovePlan }> {
  const { plan } = await planBack(source, target)
  const role = backRole(run)
  const password = randomBytes(24).toString('base64url')
  for (const server of source.shards) {
    await withShard(server, (client) =>
      adminQuery(client, `ALTER ROLE ${quoteName(role)} PASSWORD ${quoteLiteral(password)}`),
    )
  }
  const facts = await withShard(target.shards[0] as (typeof target.shards)[number], readServerFacts)
  const followers = target.shards.map(
    (server, shard) =>
      new Follower({
        plan,
        run: backName(run),
        shard,
        source: server,
        targets: source.shards.map((one) => ({ ...one, user: role, password })),
        slot: backSlot(run, shard),
        publication: backName(run),
        startLsn: marks[shard] as Lsn,
        serverVersion: facts.version,
        binary: plan.isBinarySafe,
        replicaRole: true,
        clock,
        parts: [],
      }),
  )
  return { followers, plan }
}
