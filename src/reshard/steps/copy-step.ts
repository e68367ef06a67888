/** Slots, then all rows part by part, then keys and indexes. Whatever is there already is left. */
import { adminQuery } from '../../pg/admin-query.js'
import type { HostClient } from '../../pg/host-client.js'
import { type Lsn, printLsn } from '../../replication/lsn.js'
import { keyIncoming } from '../buckets/incoming.js'
import { copyParts, type PartReader } from '../copy/copy-parts.js'
import { nameOfPart, type Part, partName } from '../copy/part.js'
import { planParts } from '../copy/plan-parts.js'
import { SnapshotKeeper } from '../copy/snapshot-keeper.js'
import { type CopiedPart, readCopied } from '../journal/copied-parts.js'
import { makePublications, makeSlots } from '../journal/run-objects.js'
import { type MoveTable, tableLabel } from '../move-table.js'
import { makeKeys } from '../schema/copy-schema.js'
import { onEachShard } from '../side.js'
import type { CopiedTable, RunContext } from './run-context.js'

const PART_BYTES = 128 << 20

export async function copyStep(context: RunContext): Promise<void> {
  const { options, found, journal } = context
  const { source, target, clock, partBytes = PART_BYTES } = options
  await context.checkTables()
  await journal.note({ copy_started_ms: clock.nowMs() })
  await makePublications(journal, source, found.plan)
  await context.point('copy:publications')
  const copied = await readCopied(target, journal.run)
  context.say(`taking a position on ${source.shards.length} source shards`)
  const hasRows = copied.some((parts) => parts.length > 0)
  const floors = await makeSlots(journal, source, clock, hasRows)
  await context.point('copy:slots')
  const parts = await planParts(journal, found.plan, source, partBytes)
  await context.point('copy:parts')
  const tally = new CopyTally(context, parts, copied)
  await tally.begin()
  await copyAll(context, { parts, copied, floors, tally })
  context.copied = tally.tables()
  context.checkSignal()
  await context.checkTables()
  if (target.isStaged) return keyIncoming(target, found.plan, journal.run)
  const dump = await context.dump()
  if (dump) {
    context.say('making keys and indexes')
    const onEntry = (): Promise<void> => context.point('copy:key')
    await makeKeys(target, dump, { run: journal.run, jobs: options.jobs, onEntry })
  }
  await onEachShard(target, analyse)
}

/** What the run has filled: catalogues are autovacuum's. A partitioned table stands for its partitions. */
async function analyse(client: HostClient): Promise<void> {
  const [row] = await adminQuery(
    client,
    `SELECT string_agg(c.oid::regclass::text, ', ') AS names
       FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
      WHERE c.relkind IN ('r', 'p', 'm') AND NOT c.relispartition AND c.relpersistence <> 't'
        AND n.nspname NOT IN ('pg_catalog', 'information_schema', 'pg_toast', 'pgshard')`,
  )
  const names = row?.['names']
  if (names) await adminQuery(client, `ANALYZE ${names}`)
}

async function copyAll(
  context: RunContext,
  work: {
    readonly parts: readonly Part[]
    readonly copied: readonly (readonly CopiedPart[])[]
    readonly floors: readonly Lsn[]
    readonly tally: CopyTally
  },
): Promise<void> {
  const { options, found, journal } = context
  const { source, target, clock, jobs, signal, pace } = options
  const { plan, binary, replicaRole } = found
  const keepers = source.shards.map((server, shard) => {
    const prefix = `pgshard_${journal.run}_c${shard}_`
    const maxAgeMs = options.snapshotAgeMs
    const floor = work.floors[shard] as Lsn
    const age = maxAgeMs === undefined ? {} : { maxAgeMs }
    return new SnapshotKeeper({ target: server, prefix, floor, clock, ...age })
  })
  const readers = source.shards.map((server, shard): PartReader[] => [
    { target: server, snapshots: keepers[shard] as SnapshotKeeper },
  ])
  await journal.note({ slots: work.floors.map(printLsn) })
  context.say(`copying ${plan.tables.length} tables in ${work.parts.length} parts`)
  try {
    await context.watched(
      copyParts({
        run: journal.run,
        plan,
        parts: work.parts,
        present: work.copied.map(
          (parts) => new Set(parts.map((one) => partName(one.table, one.source, one.part))),
        ),
        target,
        readers,
        jobs,
        binary,
        replicaRole,
        pace,
        ...(signal ? { signal } : {}),
        point: (name) => context.point(`copy:${name}`),
        onBytes: (table, bytes) => work.tally.onBytes(table, bytes),
        onPart: async (part, copied) => {
          await work.tally.onPart(part, copied)
          await context.point('copy:part')
        },
      }),
    )
  } finally {
    await Promise.all(keepers.map((keeper) => keeper.close()))
  }
}

/** Sums of the parts of each table, told to the journal and the listener. */
class CopyTally {
  readonly #context: RunContext
  readonly #parts: readonly Part[]
  /** By name of part. */
  readonly #done = new Map<string, CopiedPart>()
  readonly #bytes = new Map<string, number>()

  constructor(
    context: RunContext,
    parts: readonly Part[],
    copied: readonly (readonly CopiedPart[])[],
  ) {
    this.#context = context
    this.#parts = parts
    for (const one of copied.flat()) {
      const isEverywhere = copied.every((list) =>
        list.some(
          (same) =>
            same.table === one.table && same.source === one.source && same.part === one.part,
        ),
      )
      if (isEverywhere) this.#done.set(partName(one.table, one.source, one.part), one)
    }
  }

  async begin(): Promise<void> {
    for (const table of this.#context.found.plan.tables) await this.#note(table)
    for (const table of this.tables()) this.#bytes.set(table.name, table.bytes)
  }

  onBytes(table: MoveTable, added: number): void {
    const label = tableLabel(table)
    const sum = (this.#bytes.get(label) ?? 0) + added
    this.#bytes.set(label, sum)
    this.#context.copiedBytes += added
    this.#context.options.listener.copied?.(label, sum, table.bytes * table.sourceShards.length)
  }

  async onPart(part: Part, copied: CopiedPart): Promise<void> {
    this.#done.set(nameOfPart(part), copied)
    await this.#note(part.table)
    await this.#context.journal.note({ copy_seen_ms: this.#context.options.clock.nowMs() })
  }

  tables(): CopiedTable[] {
    return this.#context.found.plan.tables.map((table) => {
      const parts = this.#of(table)
      return {
        name: tableLabel(table),
        rows: parts.reduce((sum, part) => sum + part.rows, 0),
        bytes: parts.reduce((sum, part) => sum + part.bytes, 0),
      }
    })
  }

  #of(table: MoveTable): CopiedPart[] {
    const label = tableLabel(table)
    return [...this.#done.values()].filter((part) => part.table === label)
  }

  async #note(table: MoveTable): Promise<void> {
    const done = this.#of(table)
    const all = this.#parts.filter((part) => part.table === table).length
    let state: 'waiting' | 'copying' | 'copied' = done.length === 0 ? 'waiting' : 'copying'
    if (done.length === all) state = 'copied'
    await this.#context.journal.setTable({
      name: tableLabel(table),
      rows: done.reduce((sum, part) => sum + part.rows, 0),
      bytes: done.reduce((sum, part) => sum + part.bytes, 0),
      totalBytes: table.bytes * table.sourceShards.length,
      state,
    })
  }
}
