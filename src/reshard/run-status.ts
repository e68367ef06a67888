/** Where a run stands, from the journal and the slots. Also finds the run when the names of the two sides are exchanged. */
import { engineError } from '../errors/engine-error.js'
import { listSlots } from '../replication/slot.js'
import { narrowed } from './buckets/bucket-sides.js'
import type { RunState } from './journal/journal.js'
import { type JournalRecord, readJournal } from './journal/read-journal.js'
import { onEachShard, type ReshardSide } from './side.js'

/** States in which a run has nothing left to do. */
export const ended: readonly RunState[] = ['cleaned', 'cut_over', 'rolled_back']

export interface FoundRun {
  readonly record: JournalRecord
  /** The sides as they were when the run began. */
  readonly source: ReshardSide
  readonly target: ReshardSide
  /** The configuration has been switched: `from` now names the new side. */
  readonly isSwitched: boolean
}

/** The latest run from one database to another, before or after its cutover. */
export async function findRun(from: ReshardSide, to: ReshardSide): Promise<FoundRun | undefined> {
  if (to.whole) return findSharedRun(from, to)
  const record = await readJournal(from.name, to)
  if (record) return { record, source: from, target: to, isSwitched: false }
  const source: ReshardSide = { ...to, name: from.name }
  const target: ReshardSide = { ...from, name: to.name }
  const switched = await readJournal(source.name, target)
  return switched && { record: switched, source, target, isSwitched: true }
}

/** Shards that were added look, when that is done, like such that are about to be taken away, and the other way round. */
async function findSharedRun(from: ReshardSide, to: ReshardSide): Promise<FoundRun | undefined> {
  const turned = narrowed({
    from: { ...(to.whole ?? to), name: from.name },
    to: { ...(from.whole ?? from), name: to.name },
  })
  const [record, switched] = await Promise.all([
    readJournal(from.name, to),
    readJournal(from.name, turned.to),
  ])
  const now = record && { record, source: from, target: to, isSwitched: false }
  const before = switched && {
    ...{ record: switched, source: turned.from, target: turned.to },
    isSwitched: true,
  }
  if (!now || !before) return now ?? before
  return isLater(now.record, before.record) ? now : before
}

/** One that has yet to end counts more than when it began: the two journals stand on different servers. */
function isLater(a: JournalRecord, b: JournalRecord): boolean {
  const isOpen = ({ state }: JournalRecord): boolean => !ended.includes(state)
  return isOpen(a) === isOpen(b) ? a.startedAt >= b.startedAt : isOpen(a)
}

export interface StatusReport {
  readonly run: string
  readonly state: RunState
  /** What to do next, as a command or a sentence. */
  readonly next: string
  readonly tables: readonly {
    readonly name: string
    readonly rows: number
    readonly bytes: number
    readonly total_bytes: number
    readonly state: string
  }[]
  /** Furthest behind of the sources; null when no slot is left. */
  readonly lag_bytes: number | null
  /** Seconds left of the copy; null when unknown. */
  readonly eta_s: number | null
  readonly error: string | null
  /** Slots, publications and other things that are still there. */
  readonly left: readonly string[]
  readonly facts: Record<string, unknown>
}

/** @throws RESHARD_NO_RUN */
export async function runStatus(from: ReshardSide, to: ReshardSide): Promise<StatusReport> {
  const found = await findRun(from, to)
  if (!found) throw engineError('RESHARD_NO_RUN', { from: from.name, to: to.name })
  const { record, source } = found
  const prefix = `pgshard_${record.run}`
  const lags = (await onEachShard(source, (client) => listSlots(client, prefix)))
    .flat()
    .map((slot) => slot.lagBytes)
  return {
    run: record.run,
    state: record.state,
    next: nextStep(record, from.name, to.name),
    tables: record.tables.map((table) => ({
      name: table.name,
      rows: table.rows,
      bytes: table.bytes,
      total_bytes: table.totalBytes,
      state: table.state,
    })),
    lag_bytes: lags.length === 0 ? null : Math.max(...lags),
    eta_s: copyEta(record),
    error: record.error,
    left: record.objects.map(
      ({ kind, side, shard, name }) => `${kind} ${name} on ${side} shard ${shard}`,
    ),
    facts: record.facts,
  }
}

function nextStep(record: JournalRecord, from: string, to: string): string {
  const cleanup = `pgshard reshard cleanup --from ${from} --to ${to}`
  const resume = `pgshard reshard resume --from ${from} --to ${to} --yes`
  switch (record.state) {
    case 'cut_over':
      return stepAfterCutover(record, from, cleanup)
    case 'rolled_back':
    case 'cleaned':
      return `pgshard reshard run --from ${from} --to ${to}`
    case 'failed':
    case 'paused':
      return `${resume}; to give it up: ${cleanup} --drop-target`
    default:
      return `wait for the run; when its process is gone: ${resume}`
  }
}

function stepAfterCutover(record: JournalRecord, from: string, cleanup: string): string {
  const served = `"${from}" is served by the new shards`
  if (record.objects.length === 0) return served
  const isFencedOnly = record.objects.every(({ kind }) => kind === 'fence')
  return isFencedOnly
    ? `none: ${served}; when the old ones may be written again: ${cleanup} --lift-fence`
    : `to go back: pgshard reshard rollback --from ${from} --to ${record.target}; to keep the new side for good: ${cleanup}`
}

function copyEta(record: JournalRecord): number | null {
  const started = Number(record.facts['copy_started_ms'])
  const seen = Number(record.facts['copy_seen_ms'])
  if (record.state !== 'copying' || !(seen > started)) return null
  const sum = (pick: (table: JournalRecord['tables'][number]) => number): number =>
    record.tables.reduce((total, table) => total + pick(table), 0)
  const done = sum((table) => table.bytes)
  const left = Math.max(0, sum((table) => table.totalBytes) - done)
  return done === 0 ? null : Math.round((left * (seen - started)) / done / 1000)
}
