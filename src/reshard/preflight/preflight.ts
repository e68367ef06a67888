/** Everything that would stop a move, found at once and before anything is written. Reads only. */
import { type Clock, systemClock } from '../../base/clock.js'
import { engineError, toEngineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { qualifiedName } from '../../pg/sql-names.js'
import { checkBuckets, checkEarlier, checkSharedSides } from '../buckets/bucket-checks.js'
import { whyNoWayBack } from '../cutover/way-back-checks.js'
import { type MovePlan, planMove, tableLabel } from '../move-table.js'
import { placeOf, type ReshardSide, withShard } from '../side.js'
import { error, type Problem, warning } from './problem.js'
import { checkReferenceTables } from './reference-checks.js'
import { checkRoom, estimateMove, type MoveEstimate } from './room.js'
import { checkOwners, checkSource, checkTarget, type ServerUse } from './server-checks.js'
import { readServerFacts, type ServerFacts } from './server-facts.js'
import { readSourceTables, type SourceTable } from './source-table.js'
import {
  checkAccess,
  checkForeignKey,
  checkIdentity,
  checkKeys,
  checkKind,
  checkSameTables,
  isWidened,
} from './table-checks.js'

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
  readonly estimate: MoveEstimate
}

export interface PreflightOptions {
  readonly clock?: Clock
  /** Readers a source shard. */
  readonly jobs?: number
  /** The move ends in a cutover that arms a way back: without one it is refused. */
  readonly needsWayBack?: boolean
}

interface Read {
  readonly facts: ServerFacts
  readonly tables: readonly SourceTable[]
  readonly indexBytes: number
}

interface TargetRead extends Read {
  /** Tables with a row in them. */
  readonly filled: readonly string[]
}

/** Connections a source shard besides its readers: journal, stream, slots, verify, fence. */
const CONNECTIONS = 8

async function read(client: HostClient): Promise<Read> {
  const facts = await readServerFacts(client)
  const tables = await readSourceTables(client)
  const [row] = await adminQuery(
    client,
    'SELECT coalesce(sum(pg_indexes_size(oid)), 0)::text AS bytes FROM unnest($1::oid[]) oid',
    [`{${tables.filter((table) => table.kind !== 'f').map((table) => table.oid)}}`],
  )
  return { facts, tables, indexBytes: Number(row?.['bytes'] ?? 0) }
}

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

/** Looks at both sides. A server that cannot be reached is a problem among the others. */
export async function preflight(
  source: ReshardSide,
  target: ReshardSide,
  options: PreflightOptions = {},
): Promise<Preflight> {
  const problems: Problem[] = [...checkSides(source, target)]
  const [sources, targets] = await Promise.all([
    readSide('source', source, read, problems),
    readSide('target', target, readTarget, problems),
  ])
  const looked = new Look(source, target, options)
  const first = sources.find((one) => one !== undefined)
  problems.push(...looked.servers(sources, targets))
  const plan = planMove(source, target, first?.tables ?? [])
  if (!first) return summary({ plan, problems, sources: [], targets: [], hasTargetTables: false })
  problems.push(...looked.tables(plan, first), ...looked.others(sources, first))
  const users = sources.flatMap((one) => one?.facts ?? [])
  problems.push(...checkBuckets(source, target, first, users))
  const standing = target.isStaged
    ? servingTables(targets, first.tables, target)
    : targetTables(targets, first.tables, target)
  problems.push(...standing.problems, ...looked.replicaRole(targets, standing.complete))
  if (!standing.complete) problems.push(...looked.owners(targets, first))
  const hasError = problems.some((problem) => problem.severity === 'error')
  if (!hasError) {
    problems.push(...(await checkReferenceTables(plan, source, options.clock ?? systemClock)))
    problems.push(...(await looked.wayBack(first.tables)))
    problems.push(...(await checkEarlier(source, target)))
  }
  const known = {
    sources: sources.flatMap((one) => one ?? []),
    targets: targets.flatMap((one) => one ?? []),
  }
  const found = summary({ plan, problems, ...known, hasTargetTables: standing.complete })
  const facts = known.sources.map((one) => one.facts)
  problems.push(...checkRoom((shard) => nameOf('source', source, shard), facts, found.estimate))
  return found
}

const nameOf = (word: 'source' | 'target', side: ReshardSide, shard: number): string =>
  `${word} shard ${shard} (${placeOf(side.shards[shard] as never)})`

/** What each shard says; undefined where it could not be asked, which is a problem. */
function readSide<T>(
  word: 'source' | 'target',
  side: ReshardSide,
  ask: (client: HostClient) => Promise<T>,
  problems: Problem[],
): Promise<(T | undefined)[]> {
  return Promise.all(
    side.shards.map(async (target, shard) => {
      try {
        return await withShard(target, ask)
      } catch (failure) {
        const { message } = toEngineError(failure)
        const mend = `see host, port, user and password of database "${side.name}" in the configuration, and pg_hba.conf there`
        problems.push(error(nameOf(word, side, shard), `cannot be looked at: ${message}`, mend))
        return undefined
      }
    }),
  )
}

/** The checks that need to know both sides. */
class Look {
  readonly #source: ReshardSide
  readonly #target: ReshardSide
  readonly #jobs: number
  readonly #needsWayBack: boolean

  constructor(source: ReshardSide, target: ReshardSide, options: PreflightOptions) {
    this.#source = source
    this.#target = target
    this.#jobs = options.jobs ?? 2
    this.#needsWayBack = options.needsWayBack ?? false
  }

  servers(
    sources: readonly (Read | undefined)[],
    targets: readonly (Read | undefined)[],
  ): Problem[] {
    const first = sources.find((one) => one !== undefined)?.facts
    const ofSources = sources.flatMap((one, shard) =>
      one
        ? checkSource(nameOf('source', this.#source, shard), one.facts, this.#sourceUse(shard))
        : [],
    )
    const ofTargets = targets.flatMap((one, shard) => {
      const where = nameOf('target', this.#target, shard)
      return one && first ? checkTarget(where, one.facts, first, this.#targetUse(shard)) : []
    })
    return [...ofSources, ...ofTargets]
  }

  #sourceUse(shard: number): ServerUse {
    return { shardsHere: shardsOn(this.#source, shard), connections: this.#jobs + CONNECTIONS }
  }

  #targetUse(shard: number): ServerUse {
    const readers = this.#source.shards.length * (this.#jobs + 1)
    return { shardsHere: shardsOn(this.#target, shard), connections: readers + CONNECTIONS }
  }

  tables(plan: MovePlan, first: Read): Problem[] {
    const problems: Problem[] = []
    if (first.tables.length === 0) {
      problems.push(
        error(
          `database "${this.#source.name}"`,
          'has no table to move',
          'name the other database with --from, or switch the two in the configuration by hand',
        ),
      )
    }
    for (const table of plan.tables) {
      const found = first.tables.find((one) => tableLabel(one) === tableLabel(table)) as SourceTable
      const kind = checkKind(found)
      problems.push(...kind, ...(kind.length > 0 ? [] : checkIdentity(table, found)))
      if (table.identity.length > 0) problems.push(...checkKeys(table, found, plan))
    }
    for (const key of first.facts.foreignKeys) problems.push(...checkForeignKey(key, plan))
    return problems
  }

  /** Every source shard has the tables of the first, and lets us at them. */
  others(sources: readonly (Read | undefined)[], first: Read): Problem[] {
    return sources.flatMap((one, shard) => {
      if (!one) return []
      const where = nameOf('source', this.#source, shard)
      const access = one.tables.flatMap((table) => checkAccess(where, table, one.facts.user))
      return one === first
        ? access
        : [...access, ...checkSameTables(where, first.tables, one.tables)]
    })
  }

  /** Said before anything is copied, because a cutover would refuse for it. */
  async wayBack(tables: readonly SourceTable[]): Promise<Problem[]> {
    const reason = await whyNoWayBack(this.#source, this.#target, tables)
    if (reason === undefined) return []
    const what = `there can be no way back after the cutover: ${reason}`
    const mend = 'mend it, or give up the way back with --no-reverse'
    const where = `database "${this.#target.name}"`
    return [this.#needsWayBack ? error(where, what, mend) : warning(where, what, mend)]
  }

  owners(targets: readonly (Read | undefined)[], first: Read): Problem[] {
    return targets.flatMap((one, shard) => {
      const where = nameOf('target', this.#target, shard)
      return one ? checkOwners(where, one.facts, first.facts) : []
    })
  }

  replicaRole(targets: readonly (Read | undefined)[], tablesStand: boolean): Problem[] {
    if (targets.every((one) => one?.facts.mayUseReplicaRole !== false)) return []
    const user = targets.find((one) => one)?.facts.user ?? '…'
    const mend = `GRANT SET ON PARAMETER session_replication_role TO "${user}", as superuser`
    const where = `database "${this.#target.name}"`
    if (!tablesStand) {
      const what = `user ${user} may not set session_replication_role: triggers and foreign keys are made in the locked moment of the cutover, which then takes longer`
      return [warning(where, what, mend)]
    }
    const what =
      'has its tables already, and the user may not keep their triggers and foreign keys from firing'
    return [error(where, what, `${mend}; or DROP the tables and let the move make them`)]
  }
}

function shardsOn(side: ReshardSide, shard: number): number {
  const server = (at: number): string => `${side.shards[at]?.host}:${side.shards[at]?.port}`
  return side.shards.filter((_, other) => server(other) === server(shard)).length
}

interface Found {
  readonly plan: MovePlan
  readonly problems: readonly Problem[]
  readonly sources: readonly Read[]
  readonly targets: readonly Read[]
  readonly hasTargetTables: boolean
}

function summary({ plan, problems, sources, targets, hasTargetTables }: Found): Preflight {
  const versions = (reads: readonly Read[]): number[] => reads.map(({ facts }) => facts.version)
  const majors = new Set(
    [...versions(sources), ...versions(targets)].map((version) => Math.floor(version / 10_000)),
  )
  const widened = hasTargetTables && isWidened(sources[0]?.tables ?? [], targets[0]?.tables ?? [])
  const indexBytes = sources.reduce((sum, one) => sum + one.indexBytes, 0)
  const facts = sources.map((one) => one.facts)
  return {
    plan,
    problems,
    replicaRole: targets.every((one) => one.facts.mayUseReplicaRole),
    hasTargetTables,
    sourceVersion: Math.min(...versions(sources)),
    targetVersion: Math.min(...versions(targets)),
    binary: plan.isBinarySafe && majors.size === 1 && !widened,
    estimate: estimateMove(plan, facts, indexBytes),
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
  const shared = checkSharedSides(source, target)
  if (shared.length > 0) return shared
  const here = new Set(source.shards.map(placeOf))
  const problems = target.shards
    .map(placeOf)
    .filter((place) => here.has(place))
    .map((place) =>
      error(
        place,
        'is a shard of both databases, of which neither has all shards of the other and more',
        'give the target servers or databases of its own, or let it have all shards of the source and others behind them',
      ),
    )
  const seen = new Set<string>()
  for (const place of target.shards.map(placeOf)) {
    if (seen.has(place)) {
      problems.push(
        error(place, 'is two shards of the target', 'give each shard a database of its own'),
      )
    }
    seen.add(place)
  }
  return problems
}

/** Targets that serve have all tables, just as they are, and nothing there acts on rows that come. */
function servingTables(
  targets: readonly (TargetRead | undefined)[],
  wanted: readonly SourceTable[],
  target: ReshardSide,
): { problems: Problem[]; complete: boolean } {
  const problems = targets.flatMap((one, shard): Problem[] => {
    if (!one) return []
    const where = nameOf('target', target, shard)
    const ofTables = one.tables.flatMap((table) => [
      ...checkKind(table).map((problem) => ({ ...problem, where: `${where}: ${problem.where}` })),
      ...checkAccess(where, table, one.facts.user),
    ])
    return [...checkSameTables(where, wanted, one.tables), ...ofTables]
  })
  return { problems, complete: true }
}

/** The targets are bare, or have the tables and no row in them. */
function targetTables(
  targets: readonly (TargetRead | undefined)[],
  wanted: readonly SourceTable[],
  target: ReshardSide,
): { problems: Problem[]; complete: boolean } {
  const isBare = targets.every(
    (one) => !one || (one.tables.length === 0 && one.facts.otherObjects === 0),
  )
  if (isBare) return { problems: [], complete: false }
  const problems = targets.flatMap((one, shard): Problem[] => {
    if (!one) return []
    const where = nameOf('target', target, shard)
    const mend =
      'DROP what is there (an unfinished run: pgshard reshard cleanup --drop-target), or make all tables, empty'
    const rows = one.filled.map((label) =>
      error(where, `table ${label} holds rows`, `TRUNCATE ${label}, or: ${mend}`),
    )
    const unlike = checkSameTables(where, wanted, one.tables, 'may be wider').map((problem) => ({
      ...problem,
      mend,
    }))
    return [...unlike, ...rows]
  })
  return { problems, complete: problems.length === 0 }
}
