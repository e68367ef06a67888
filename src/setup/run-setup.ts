/**
 * `pgshard setup`: schema pgshard, grants, disjoint sequences and guards on every shard of a database. Idempotent.
 * Everything is read from all shards before anything is written to one; each shard's schema is one transaction.
 */
import { randomBytes } from 'node:crypto'
import { engineError, isEngineError } from '../errors/engine-error.js'
import { adminRows, inTransaction } from '../pg/admin-query.js'
import { qualifiedName, quoteName } from '../pg/sql-names.js'
import { reviewConstraints } from '../routing/constraint-list.js'
import type { ShardedTable, ShardingConfig } from '../sharding/sharded-table.js'
import { applySequences, planSequences, type SequencePlan } from './apply-sequences.js'
import { type GuardChange, guardChange } from './guards.js'
import {
  CURRENT_VERSION,
  roleGrants,
  SCHEMA_LOCK,
  schemaVersions,
  uniqueIdSql,
} from './schema-text.js'
import { sequenceChanges } from './sequences.js'
import { type SetupShard, withSetupShards } from './setup-shards.js'
import type { SetupTarget } from './setup-target.js'
import {
  assignIdentity,
  type Identity,
  identitySql,
  readShardState,
  type ShardState,
} from './shard-identity.js'
import { findShardedRelations, type ShardedRelation } from './sharded-relations.js'

export interface SetupOptions {
  readonly guards: boolean
  readonly dryRun: boolean
}

export interface SetupShardReport {
  readonly shard: number
  readonly id: number
  /** 0: the schema was not there. */
  readonly fromVersion: number
  readonly toVersion: number
  /** The SQL that was, or with a dry run would be, carried out; empty when nothing changed but grants. */
  readonly sql: string
}

export interface SetupReport {
  readonly database: string
  readonly clusterId: string
  readonly dryRun: boolean
  readonly shards: readonly SetupShardReport[]
  /** Roles that got the grants. */
  readonly roles: readonly string[]
  readonly sequences: { readonly changed: readonly string[]; readonly unchanged: readonly string[] }
  readonly guards: { readonly changed: readonly string[]; readonly unchanged: readonly string[] }
  /** Those that do not hold over shards by themselves, from the catalogue of the first. */
  readonly constraints: readonly string[]
  /** What was left out, and what an operator should know. */
  readonly notes: readonly string[]
}

/** Per shard, what is there. */
interface Seen {
  readonly states: readonly ShardState[]
  readonly relations: readonly (readonly ShardedRelation[])[]
  readonly roles: readonly string[]
}

export function runSetup(
  target: SetupTarget,
  sharding: ShardingConfig | undefined,
  options: SetupOptions,
): Promise<SetupReport> {
  return withSetupShards(target, async (shards) => {
    const notes: string[] = []
    const seen = await look(shards, target, sharding?.tables ?? [], notes)
    const identity = assignIdentity(target.database, seen.states, randomBytes(4).toString('hex'))
    const grows = seen.states.some(({ shardId }) => shardId === undefined)
    const schema = seen.states.map((state, number) => schemaSql(state, identity, number, grows))
    const grants = seen.roles.map((role) => roleGrants(quoteName(role))).join('')
    if (!options.dryRun) await applySchema(shards, schema, grants)
    const sequences = await planSequences(shards, seen.relations)
    notes.push(...sequences.skipped.map((reason) => `sequence ${reason}; left as it is`))
    if (!options.dryRun) await applySequences(shards, seen.relations, sequences)
    const [first] = shards
    const constraints =
      first && sharding
        ? await reviewConstraints(sharding, (sql) => adminRows(first.client, sql))
        : []
    const guards = guardChanges(seen.relations, options.guards, notes)
    if (!options.dryRun) await applyGuards(shards, guards)
    return {
      database: target.database,
      clusterId: identity.clusterId,
      dryRun: options.dryRun,
      shards: seen.states.map((state, shard) => ({
        shard,
        id: identity.shardIds[shard] as number,
        fromVersion: state.version,
        toVersion: CURRENT_VERSION,
        sql: [
          schema[shard],
          grants,
          sequenceSql(sequences, shard),
          ...(guards[shard] ?? []).map((guard) => guard.sql),
        ].join(''),
      })),
      roles: seen.roles,
      sequences: {
        changed: sequences.changes.map((change) => change.name),
        unchanged: sequences.unchanged,
      },
      guards: guardNames(guards),
      constraints,
      notes,
    }
  })
}

async function look(
  shards: readonly SetupShard[],
  target: SetupTarget,
  tables: readonly ShardedTable[],
  notes: string[],
): Promise<Seen> {
  const states = await Promise.all(shards.map((shard) => readShardState(shard.ask)))
  states.forEach((state, number) => {
    const label = shards[number]?.label ?? ''
    if (state.version > CURRENT_VERSION) {
      throw engineError('SETUP_NEWER', {
        shard: label,
        found: state.version,
        known: CURRENT_VERSION,
      })
    }
    if (state.maxPrepared === 0 && shards.length > 1) {
      notes.push(
        `${label} has max_prepared_transactions = 0: transactions that write on several shards are refused; raise it and restart the server`,
      )
    }
  })
  const relations = await Promise.all(
    shards.map((shard) => findShardedRelations(shard.ask, tables)),
  )
  return { states, relations, roles: await existingRoles(shards, target.roles, notes) }
}

async function existingRoles(
  shards: readonly SetupShard[],
  wanted: readonly string[],
  notes: string[],
): Promise<string[]> {
  const roles: string[] = []
  const known = await Promise.all(
    shards.map(async (shard) => {
      const rows = await shard.ask('SELECT rolname FROM pg_roles')
      return new Set(rows.map((row) => row['rolname']))
    }),
  )
  for (const role of wanted) {
    const missing = known.findIndex((names) => !names.has(role))
    if (missing === -1) roles.push(role)
    else notes.push(`role "${role}" does not exist on shard ${missing}: it gets no grants`)
  }
  return roles
}

/** Migrations, version and identity of one shard; empty when all is there. */
function schemaSql(state: ShardState, identity: Identity, number: number, grows: boolean): string {
  const pending = schemaVersions.filter((one) => one.version > state.version)
  const versionRow = `INSERT INTO pgshard.schema_version (version) VALUES (${CURRENT_VERSION})
  ON CONFLICT (only_row) DO UPDATE SET version = excluded.version, changed_at = now();
`
  return [
    pending.length > 0 ? 'CREATE SCHEMA IF NOT EXISTS pgshard;\n' : '',
    ...pending.map((one) => one.sql),
    pending.length > 0 ? versionRow : '',
    identitySql(identity, number),
    // a shard that came later must be known to those that were there
    pending.length > 0 || grows ? uniqueIdSql(identity.shardIds, number) : '',
  ].join('')
}

async function applySchema(
  shards: readonly SetupShard[],
  schema: readonly string[],
  grants: string,
): Promise<void> {
  for (const [number, shard] of shards.entries()) {
    await inTransaction(shard.client, async () => {
      await shard.ask(`SELECT pg_advisory_xact_lock(${SCHEMA_LOCK})`)
      await shard.ask(`${schema[number]}${grants}`)
    })
  }
}

const sequenceSql = (plan: SequencePlan, shard: number): string =>
  plan.changes
    .flatMap(({ states }) => sequenceChanges(states) ?? [])
    .filter((change) => change.shard === shard)
    .map((change) => change.sql)
    .join('')

/** By shard. Without `--guards` nothing is made, but a guard that is out of date is named. */
function guardChanges(
  relations: readonly (readonly ShardedRelation[])[],
  wanted: boolean,
  notes: string[],
): GuardChange[][] {
  return relations.map((all, shard) =>
    all.flatMap((relation) => {
      const change = guardChange(relation, shard)
      const name = qualifiedName(relation)
      if (change === undefined) {
        if (wanted) notes.push(`${name}: keys are placed by sha1, which SQL cannot check; no guard`)
        return []
      }
      if (wanted) return [change]
      if (change.sql !== '' && relation.guard !== undefined) {
        notes.push(`${name} on shard ${shard} has a guard for another map: run setup with --guards`)
      }
      return []
    }),
  )
}

async function applyGuards(
  shards: readonly SetupShard[],
  guards: readonly (readonly GuardChange[])[],
): Promise<void> {
  for (const [number, shard] of shards.entries()) {
    for (const { relation, sql } of guards[number] ?? []) {
      if (sql === '') continue
      try {
        await inTransaction(shard.client, () =>
          shard.ask(`SET LOCAL lock_timeout = '30s';\n${sql}`),
        )
      } catch (error) {
        if (!isEngineError(error) || error.sqlstate !== '23514') throw error
        throw engineError(
          'SETUP_GUARD_VIOLATED',
          { table: qualifiedName(relation), shard: shard.label },
          { cause: error },
        )
      }
    }
  }
}

function guardNames(guards: readonly (readonly GuardChange[])[]): SetupReport['guards'] {
  const all = guards.flat()
  const changed = new Set(
    all.filter((one) => one.sql !== '').map((one) => qualifiedName(one.relation)),
  )
  const names = new Set(all.map((one) => qualifiedName(one.relation)))
  return { changed: [...changed], unchanged: [...names].filter((name) => !changed.has(name)) }
}
