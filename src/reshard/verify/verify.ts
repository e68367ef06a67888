/**
 * Verification: N sources against M targets, all rows. Tables are compared in slices, each in snapshots of its own
 * (`snapshots.ts`), so that no snapshot grows old; what was found equal is remembered, and one that died goes on.
 */
import type { Clock } from '../../base/clock.js'
import { engineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import { type MovePlan, type MoveTable, planMove, tableLabel } from '../move-table.js'
import { readSourceTables, type SourceTable } from '../preflight/source-table.js'
import { onEachShard, type ReshardSide } from '../side.js'
import { addComparisons, compareTable, type TableComparison } from './compare-tables.js'
import { type BucketRange, bucketCountFor } from './row-hash.js'
import { type BothSides, type HeldStream, snapshotsLive, snapshotsNow } from './snapshots.js'
import { noStore, type VerifiedPart, type VerifyStore } from './verify-store.js'

export interface VerifyReport {
  readonly tables: readonly TableComparison[]
  /** Position of each source at which the last slice was compared; empty for quiet databases. */
  readonly sourceLsns: readonly string[]
  /** The tables that were compared in one pair of snapshots, in order. */
  readonly slices: readonly VerifySlice[]
  readonly same: boolean
  readonly elapsedMs: number
}

export interface VerifySlice {
  readonly tables: readonly string[]
  readonly lsns: readonly string[]
}

export interface VerifyOptions {
  readonly source: ReshardSide
  readonly target: ReshardSide
  readonly clock: Clock
  /** A table was compared whole. */
  readonly onTable?: (comparison: TableComparison) => Promise<void> | void
  /** A part of a table is about to be compared. */
  readonly onPart?: (table: string, part: number, of: number) => void
  readonly store?: VerifyStore
  readonly signal?: AbortSignal
  /** A snapshot older than this is let go after the part at hand. */
  readonly sliceMs?: number
  /** Tables are compared in parts of about this size. */
  readonly partBytes?: number
}

export interface LiveVerifyOptions extends VerifyOptions {
  readonly plan: MovePlan
  readonly run: string
  readonly followers: readonly HeldStream[]
  /** How long the applier may be held for the snapshots. */
  readonly holdMs: number
  readonly onWait?: (text: string) => void
}

const SLICE_MS = 600_000
const PART_BYTES = 32 * 2 ** 30

/** Verifies while the sources are written; only after every copy has been caught up with. @throws RESHARD_VERIFY_WAITS */
export function verifyLive(options: LiveVerifyOptions): Promise<VerifyReport> {
  return new Verification(options, options.plan, () => snapshotsLive(options)).run()
}

/** Compares two databases that nobody writes. @throws RESHARD_VERIFY_ENCODING, RESHARD_VERIFY_SHARED */
export async function verifyQuiet(options: VerifyOptions): Promise<VerifyReport> {
  const { source, target } = options
  if (target.isStaged)
    throw engineError('RESHARD_VERIFY_SHARED', { from: source.name, to: target.name })
  const [here, there] = await Promise.all([readTables(source), readTables(target)])
  if (here.encoding !== there.encoding) {
    const encodings = { from: here.encoding, to: there.encoding }
    throw engineError('RESHARD_VERIFY_ENCODING', encodings)
  }
  const unlike = unlikeTables(here.tables, there.tables)
  const names = new Set(unlike.map((table) => table.name))
  const comparable = here.tables.filter((table) => !names.has(tableLabel(table)))
  const plan = planMove(source, target, comparable)
  const verification = new Verification(options, plan, () => snapshotsNow(options))
  for (const table of unlike) await options.onTable?.(table)
  const report = await verification.run()
  return {
    ...report,
    tables: [...report.tables, ...unlike],
    same: report.same && unlike.length === 0,
  }
}

async function readTables(
  side: ReshardSide,
): Promise<{ tables: readonly SourceTable[]; encoding: string }> {
  const [first] = await onEachShard(
    { ...side, shards: side.shards.slice(0, 1) },
    async (client) => {
      const [row] = await adminQuery(
        client,
        `SELECT current_setting('server_encoding') AS encoding`,
      )
      const tables = await readSourceTables(client)
      // A partition is compared with its parent, and other servers' tables are not ours to read.
      const own = tables.filter((table) => !table.isPartition && table.kind !== 'f')
      return { tables: own, encoding: row?.['encoding'] ?? '' }
    },
  )
  return first as { tables: readonly SourceTable[]; encoding: string }
}

/** Tables that stand on one side only, or with other columns. */
function unlikeTables(
  here: readonly SourceTable[],
  there: readonly SourceTable[],
): TableComparison[] {
  const others = new Map(there.map((table) => [tableLabel(table), table]))
  const unlike = (table: SourceTable, reason: string): TableComparison => ({
    name: tableLabel(table),
    sourceRows: 0,
    targetRows: 0,
    unequalBuckets: 0,
    keys: [],
    misplaced: 0,
    same: false,
    reason,
  })
  const columns = (table: SourceTable): string =>
    table.columns
      .map((column) => JSON.stringify(column.name))
      .sort()
      .join()
  const found = here.flatMap((table) => {
    const twin = others.get(tableLabel(table))
    others.delete(tableLabel(table))
    if (!twin) return [unlike(table, 'is not on the target')]
    return columns(twin) === columns(table)
      ? []
      : [unlike(table, 'has other columns on the target')]
  })
  return [...found, ...[...others.values()].map((table) => unlike(table, 'is not on the source'))]
}

interface Part {
  readonly table: MoveTable
  readonly part: number
  readonly of: number
  readonly range: BucketRange
}

class Verification {
  readonly #options: VerifyOptions
  readonly #plan: MovePlan
  readonly #snapshots: () => Promise<BothSides>
  readonly #store: VerifyStore
  readonly #startedMs: number
  /** Table → comparisons of its parts. */
  readonly #found = new Map<string, TableComparison[]>()
  readonly #slices: { tables: string[]; lsns: readonly string[] }[] = []

  constructor(options: VerifyOptions, plan: MovePlan, snapshots: () => Promise<BothSides>) {
    this.#options = options
    // What stands where it is has nothing to be compared with.
    const tables = plan.tables.filter(({ sourceShards }) => sourceShards.length > 0)
    this.#plan = { ...plan, tables }
    this.#snapshots = snapshots
    this.#store = options.store ?? noStore
    this.#startedMs = options.clock.monotonicMs()
  }

  async run(): Promise<VerifyReport> {
    const waiting = await this.#waitingParts()
    while (waiting.length > 0) await this.#slice(waiting)
    const tables = this.#plan.tables.map((table) =>
      addComparisons(this.#found.get(tableLabel(table)) as TableComparison[]),
    )
    await this.#store.clear()
    return {
      tables,
      sourceLsns: this.#slices.at(-1)?.lsns ?? [],
      slices: this.#slices,
      same: tables.every((table) => table.same),
      elapsedMs: Math.round(this.#options.clock.monotonicMs() - this.#startedMs),
    }
  }

  /** All parts but those that an earlier attempt has found equal. */
  async #waitingParts(): Promise<Part[]> {
    const done = new Map<string, VerifiedPart>()
    const id = (name: string, part: number, of: number) => `${part}/${of} ${name}`
    for (const one of await this.#store.read()) {
      done.set(id(one.comparison.name, one.part, one.of), one)
    }
    const waiting: Part[] = []
    for (const part of this.#plan.tables.flatMap((table) => this.#partsOf(table))) {
      const earlier = done.get(id(tableLabel(part.table), part.part, part.of))
      if (earlier) await this.#take(part, earlier.comparison)
      else waiting.push(part)
    }
    return waiting
  }

  #partsOf(table: MoveTable): Part[] {
    const shards = table.sourceShards.length
    const buckets = bucketCountFor(table.rowEstimate * shards)
    const wanted = Math.ceil((table.bytes * shards) / (this.#options.partBytes ?? PART_BYTES))
    const of = Math.min(Math.max(wanted, 1), buckets)
    const edge = (part: number): number => Math.floor((buckets * part) / of)
    return Array.from({ length: of }, (_, part) => ({
      table,
      part,
      of,
      range: { from: edge(part), to: edge(part + 1), of: buckets },
    }))
  }

  /** Compares from the front of `waiting` in one pair of snapshots, until these are old. */
  async #slice(waiting: Part[]): Promise<void> {
    const { clock, signal, sliceMs = SLICE_MS } = this.#options
    const both = await this.#snapshots()
    const takenMs = clock.monotonicMs()
    const slice = { tables: [] as string[], lsns: both.lsns }
    this.#slices.push(slice)
    const aborted = () => void both.close()
    signal?.addEventListener('abort', aborted, { once: true })
    try {
      do {
        if (signal?.aborted) throw engineError('INTERRUPTED', { what: 'reshard verify' })
        const part = waiting[0] as Part
        this.#options.onPart?.(tableLabel(part.table), part.part, part.of)
        const comparison = await compareTable(part.table, this.#plan, both, part.range)
        waiting.shift()
        if (slice.tables.at(-1) !== comparison.name) slice.tables.push(comparison.name)
        const { part: number, of } = part
        if (comparison.same) await this.#store.add({ part: number, of, comparison })
        await this.#take(part, comparison)
      } while (waiting.length > 0 && clock.monotonicMs() - takenMs < sliceMs)
    } catch (error) {
      if (signal?.aborted) throw engineError('INTERRUPTED', { what: 'reshard verify' })
      throw error
    } finally {
      signal?.removeEventListener('abort', aborted)
      await both.close()
    }
  }

  async #take(part: Part, comparison: TableComparison): Promise<void> {
    const parts = this.#found.get(comparison.name) ?? []
    parts.push(comparison)
    this.#found.set(comparison.name, parts)
    if (parts.length === part.of) await this.#options.onTable?.(addComparisons(parts))
  }
}
