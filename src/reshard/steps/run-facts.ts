/** What a run knows of both sides: found by preflight when it begins, read again and compared when it is taken up. */
import { createHash } from 'node:crypto'
import { engineError } from '../../errors/engine-error.js'
import { changedShape, readShapes, type TableShapes } from '../follow/table-shapes.js'
import type { JournalRecord } from '../journal/read-journal.js'
import { type MovePlan, planMove, tableLabel } from '../move-table.js'
import type { Preflight, Problem } from '../preflight/preflight.js'
import { readServerFacts } from '../preflight/server-facts.js'
import { readSourceTables } from '../preflight/source-table.js'
import { onEachShard, placeOf, type ReshardSide, withShard } from '../side.js'

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
  /** Of each source shard, when the run began; undefined until it is recorded. */
  readonly shapes?: readonly TableShapes[]
}

interface KeptFacts {
  readonly replicaRole: boolean
  readonly hasTargetTables: boolean
  readonly binary: boolean
  /** Of each source shard, when the run began. */
  readonly shapes: readonly TableShapes[]
  /** Of the sharding of both sides. */
  readonly sharding: string
}

/** What the journal keeps, for whoever takes the run up. @throws RESHARD_DDL when a table came or went since preflight */
export async function factsToKeep(
  found: Preflight,
  source: ReshardSide,
  target: ReshardSide,
): Promise<{ readonly begin: KeptFacts }> {
  const shapes = await onEachShard(source, readShapes)
  const first = placeOf(source.shards[0] as (typeof source.shards)[number])
  checkTables(found.plan, shapes[0] ?? {}, first)
  return {
    begin: {
      replicaRole: found.replicaRole,
      hasTargetTables: found.hasTargetTables,
      binary: found.binary,
      shapes,
      sharding: shardingDigest(source, target),
    },
  }
}

/** An index or a constraint that came or went while the run was down is accepted and said: rows are as they were. */
function settledShapes(
  before: readonly TableShapes[],
  now: readonly TableShapes[],
  source: ReshardSide,
): { readonly shapes: readonly TableShapes[]; readonly problems: readonly Problem[] } {
  const problems: Problem[] = []
  const shapes = before.map((shape, shard) => {
    const there = now[shard] ?? {}
    const change = changedShape(shape, there)
    // Any other change is refused by the first check of the run.
    if (!change?.isOfKeys) return shape
    const where = placeOf(source.shards[shard] as (typeof source.shards)[number])
    const mend = 'make the same change on each target after the move'
    problems.push({ severity: 'warning', where, what: `${change.table}: ${change.what}`, mend })
    return there
  })
  return { shapes, problems }
}

/** Every table of the plan is there; a new one would have rows that nobody moves. */
function checkTables(plan: MovePlan, shapes: TableShapes, server: string): void {
  const changed = (table: string, what: string): Error =>
    engineError('RESHARD_DDL', { table, server, what })
  const known = new Set(plan.tables.flatMap((table) => table.lineage))
  for (const table of plan.tables) {
    const label = tableLabel(table)
    if (!shapes[label]) throw changed(label, 'it is gone')
  }
  for (const table of Object.keys(shapes)) {
    // A partitioned table without partitions has no rows.
    if (!known.has(table) && !plan.partitioned.has(table)) {
      throw changed(table, 'it was not there when the move began')
    }
  }
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
  if (!kept?.shapes) throw changed('it was begun by an older version')
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
  const now = await onEachShard(source, readShapes)
  const { shapes, problems } = settledShapes(kept.shapes, now, source)
  return {
    plan,
    problems,
    replicaRole: kept.replicaRole,
    hasTargetTables: kept.hasTargetTables,
    sourceVersion: read.version,
    targetVersion: targetFacts.version,
    binary: kept.binary,
    shapes,
  }
}
