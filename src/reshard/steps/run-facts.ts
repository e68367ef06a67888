/** What a run knows of both sides: found by preflight when it begins, read again and compared when it is taken up. */
import { createHash } from 'node:crypto'
import { engineError } from '../../errors/engine-error.js'
import type { JournalRecord } from '../journal/read-journal.js'
import { type MovePlan, planMove, tableLabel } from '../move-table.js'
import type { Preflight, Problem } from '../preflight/preflight.js'
import { readServerFacts } from '../preflight/server-facts.js'
import { readSourceTables } from '../preflight/source-table.js'
import { placeOf, type ReshardSide, withShard } from '../side.js'

export interface RunFacts {
  readonly plan: MovePlan
  readonly problems: readonly Problem[]
  /** Triggers and foreign keys of the targets can be kept from firing. */
  readonly replicaRole: boolean
  /** The tables stood on the targets before the run. */
  readonly hasTargetTables: boolean
  readonly sourceVersion: number
  readonly targetVersion: number
  /** Rows and COPY may travel in binary. */
  readonly binary: boolean
}

interface KeptFacts {
  readonly replicaRole: boolean
  readonly hasTargetTables: boolean
  readonly binary: boolean
  /** Table → its columns and key. */
  readonly tables: Readonly<Record<string, string>>
  /** Of the sharding of both sides. */
  readonly sharding: string
}

/** What the journal keeps, for whoever takes the run up. */
export function factsToKeep(
  found: Preflight,
  source: ReshardSide,
  target: ReshardSide,
): { readonly begin: KeptFacts } {
  return {
    begin: {
      replicaRole: found.replicaRole,
      hasTargetTables: found.hasTargetTables,
      binary: found.binary,
      tables: shapesOf(found.plan),
      sharding: shardingDigest(source, target),
    },
  }
}

function shapesOf(plan: MovePlan): Record<string, string> {
  return Object.fromEntries(
    plan.tables.map((table) => [
      tableLabel(table),
      `${table.columns.map(({ name, type }) => `${name} ${type}`).join(', ')}; key ${table.identity.join(' ')}`,
    ]),
  )
}

function shardingDigest(source: ReshardSide, target: ReshardSide): string {
  const text = JSON.stringify(
    [source, target].map(({ shards, sharding }) => [shards.length, sharding]),
    (_, value: unknown) => (typeof value === 'bigint' ? String(value) : value),
  )
  return createHash('sha256').update(text).digest('hex')
}

/** @throws RESHARD_DDL, RESHARD_CONFIG_CHANGED when what the run leans on is no longer as it was */
export async function readFacts(
  record: JournalRecord,
  source: ReshardSide,
  target: ReshardSide,
): Promise<RunFacts> {
  const kept = record.facts['begin'] as KeptFacts | undefined
  const changed = (what: string): Error =>
    engineError('RESHARD_CONFIG_CHANGED', { name: source.name, run: record.run, what })
  if (!kept) throw changed('it was begun by an older version')
  if (kept.sharding !== shardingDigest(source, target)) {
    throw changed('number of shards or sharding differ')
  }
  const first = source.shards[0] as (typeof source.shards)[number]
  const read = await withShard(first, async (client) => ({
    tables: await readSourceTables(client),
    version: (await readServerFacts(client)).version,
  }))
  const targetFacts = await withShard(
    target.shards[0] as (typeof target.shards)[number],
    readServerFacts,
  )
  const plan = planMove(source, target, read.tables)
  checkShapes(kept.tables, shapesOf(plan), placeOf(first))
  return {
    plan,
    problems: [],
    replicaRole: kept.replicaRole,
    hasTargetTables: kept.hasTargetTables,
    sourceVersion: read.version,
    targetVersion: targetFacts.version,
    binary: kept.binary,
  }
}

function checkShapes(
  before: Readonly<Record<string, string>>,
  now: Readonly<Record<string, string>>,
  server: string,
): void {
  for (const [table, shape] of Object.entries(before)) {
    if (now[table] === shape) continue
    const what =
      now[table] === undefined ? 'it is gone' : `it was (${shape}), it is (${now[table]})`
    throw engineError('RESHARD_DDL', { table, server, what })
  }
  for (const table of Object.keys(now)) {
    if (before[table] !== undefined) continue
    throw engineError('RESHARD_DDL', {
      table,
      server,
      what: 'it was not there when the move began',
    })
  }
}
