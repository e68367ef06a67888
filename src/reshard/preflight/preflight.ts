/** Everything that would stop a move, found at once and before anything is written. Reads only. */
import { engineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { type MovePlan, type MoveTable, planMove, tableLabel } from '../move-table.js'
import { onEachShard, placeOf, type ReshardSide } from '../side.js'
import { qualifiedName } from '../sql-names.js'
import { addSums, readBucketSums, unequalBuckets } from '../verify/row-hash.js'
import {
  checkForeignKey,
  checkIdentity,
  checkKeys,
  checkKind,
  checkSameTables,
  checkSource,
  checkTarget,
  type Problem,
} from './preflight-checks.js'
import { readServerFacts, type ServerFacts } from './server-facts.js'
import { readSourceTables, type SourceTable } from './source-table.js'

export type { Problem }

export interface Preflight {
  readonly plan: MovePlan
  readonly problems: readonly Problem[]
  /** Triggers and foreign keys of the targets can be kept from firing. */
  readonly replicaRole: boolean
  /** The tables stand on the targets already, empty. */
  readonly hasTargetTables: boolean
  readonly sourceVersion: number
  readonly targetVersion: number
  /** Rows and COPY may travel in binary. */
  readonly binary: boolean
}

interface Read {
  readonly facts: ServerFacts
  readonly tables: readonly SourceTable[]
}

interface TargetRead extends Read {
  /** Tables with a row in them. */
  readonly filled: readonly string[]
}

const read = async (client: HostClient): Promise<Read> => ({
  facts: await readServerFacts(client),
  tables: await readSourceTables(client),
})

async function readTarget(client: HostClient): Promise<TargetRead> {
  const found = await read(client)
  const filled: string[] = []
  for (const table of found.tables) {
    if (table.kind === 'f') continue
    const [row] = await adminQuery(
      client,
      `SELECT EXISTS (SELECT FROM ${qualifiedName(table)})::text AS filled`,
    )
    if (row?.['filled'] === 'true') filled.push(tableLabel(table))
  }
  return { ...found, filled }
}

/** Looks at both sides. Rejects only when a server cannot be reached. */
export async function preflight(source: ReshardSide, target: ReshardSide): Promise<Preflight> {
  const [sources, targets] = await Promise.all([
    onEachShard(source, read),
    onEachShard(target, readTarget),
  ])
  const first = sources[0] as Read
  const plan = planMove(source, target, first.tables)
  const problems: Problem[] = [...checkSides(source, target)]
  if (first.tables.length === 0) {
    problems.push({
      severity: 'error',
      where: `database "${source.name}"`,
      what: 'has no table to move',
      mend: 'name the other database with --from, or switch the two in the configuration by hand',
    })
  }
  for (const [shard, { facts, tables }] of sources.entries()) {
    const where = `source shard ${shard} (${placeOf(source.shards[shard] as never)})`
    const server = serverOf(source, shard)
    const shardsHere = source.shards.filter((_, other) => serverOf(source, other) === server).length
    problems.push(...checkSource(where, facts, shardsHere))
    if (shard > 0) problems.push(...checkSameTables(where, first.tables, tables))
  }
  const standing = targetTables(targets, first.tables, target)
  problems.push(...standing.problems)
  for (const [shard, { facts }] of targets.entries()) {
    const where = `target shard ${shard} (${placeOf(target.shards[shard] as never)})`
    problems.push(...checkTarget(where, facts, first.facts))
  }
  for (const [i, table] of plan.tables.entries()) {
    const found = first.tables[i] as SourceTable
    const kind = checkKind(found)
    problems.push(...kind, ...(kind.length > 0 ? [] : checkIdentity(table, found)))
    if (table.identity.length > 0) problems.push(...checkKeys(table, found, plan))
  }
  for (const key of first.facts.foreignKeys) problems.push(...checkForeignKey(key, plan))
  if (standing.complete && !targets.every(({ facts }) => facts.mayUseReplicaRole)) {
    problems.push({
      severity: 'error',
      where: `database "${target.name}"`,
      what: 'has its tables already, and the user may not keep their triggers and foreign keys from firing',
      mend: 'GRANT SET ON PARAMETER session_replication_role TO …, or DROP the tables and let the move make them',
    })
  }
  const hasError = problems.some((problem) => problem.severity === 'error')
  if (!hasError) problems.push(...(await checkReferenceTables(plan, source)))
  return summary(plan, problems, sources, targets, standing.complete)
}

const serverOf = (side: ReshardSide, shard: number): string =>
  `${side.shards[shard]?.host}:${side.shards[shard]?.port}`

function summary(
  plan: MovePlan,
  problems: readonly Problem[],
  sources: readonly Read[],
  targets: readonly Read[],
  hasTargetTables: boolean,
): Preflight {
  const versions = (reads: readonly Read[]): number[] => reads.map(({ facts }) => facts.version)
  const majors = new Set(
    [...versions(sources), ...versions(targets)].map((v) => Math.floor(v / 10_000)),
  )
  return {
    plan,
    problems,
    replicaRole: targets.every(({ facts }) => facts.mayUseReplicaRole),
    hasTargetTables,
    sourceVersion: Math.min(...versions(sources)),
    targetVersion: Math.min(...versions(targets)),
    binary: plan.isBinarySafe && majors.size === 1,
  }
}

/** @throws RESHARD_REFUSED with every problem in its detail, when one of them is an error */
export function refuseProblems(found: Preflight, from: string, to: string): void {
  const errors = found.problems.filter((problem) => problem.severity === 'error')
  if (errors.length === 0) return
  const detail = errors.map(({ where, what, mend }) => `${where}: ${what}\n    mend: ${mend}`)
  throw engineError(
    'RESHARD_REFUSED',
    { from, to, problems: errors.length === 1 ? '1 problem' : `${errors.length} problems` },
    { detail: detail.join('\n') },
  )
}

function checkSides(source: ReshardSide, target: ReshardSide): Problem[] {
  const here = new Set(source.shards.map(placeOf))
  const problems: Problem[] = target.shards
    .map(placeOf)
    .filter((place) => here.has(place))
    .map((place) => ({
      severity: 'error',
      where: place,
      what: 'is a shard of both databases',
      mend: 'give the target servers or databases of its own',
    }))
  const seen = new Set<string>()
  for (const place of target.shards.map(placeOf)) {
    if (seen.has(place)) {
      problems.push({
        severity: 'error',
        where: place,
        what: 'is two shards of the target',
        mend: 'give each shard a database of its own',
      })
    }
    seen.add(place)
  }
  return problems
}

/** The targets are bare, or have the tables and no row in them. */
function targetTables(
  targets: readonly TargetRead[],
  wanted: readonly SourceTable[],
  target: ReshardSide,
): { problems: Problem[]; complete: boolean } {
  const isBare = targets.every(
    ({ tables, facts }) => tables.length === 0 && facts.otherObjects === 0,
  )
  if (isBare) return { problems: [], complete: false }
  const problems = targets.flatMap(({ tables, filled }, shard): Problem[] => {
    const where = `target shard ${shard} (${placeOf(target.shards[shard] as never)})`
    const mend =
      'DROP what is there (an unfinished run: pgshard reshard cleanup --drop-target), or make all tables, empty'
    const rows = filled.map(
      (label): Problem => ({
        severity: 'error',
        where,
        what: `table ${label} holds rows`,
        mend: `TRUNCATE ${label}, or: ${mend}`,
      }),
    )
    const unlike = checkSameTables(where, wanted, tables).map((problem) => ({ ...problem, mend }))
    return [...unlike, ...rows]
  })
  return { problems, complete: problems.length === 0 }
}

/** A reference table is read from one source: the copies on the others must be equal to it. */
async function checkReferenceTables(plan: MovePlan, source: ReshardSide): Promise<Problem[]> {
  const tables = plan.tables.filter((table: MoveTable) => table.from.kind === 'reference')
  if (tables.length === 0 || plan.sourceCount === 1) return []
  const sums = await onEachShard(source, async (client) => {
    const all = []
    for (const table of tables) all.push(await readBucketSums(client, table))
    return all
  })
  return tables.flatMap((table, i) =>
    sums.slice(1).flatMap((mine, shard): Problem[] => {
      const unequal = unequalBuckets(addSums([sums[0]?.[i] ?? new Map()]), mine[i] ?? new Map())
      if (unequal.length === 0) return []
      return [
        {
          severity: 'warning',
          where: tableLabel(table),
          what: `reference table differs between source shards 0 and ${shard + 1} (or was written just now); shard 0's rows are moved`,
          mend: `compare it on both shards and mend shard 0's copy before the move`,
        },
      ]
    }),
  )
}
