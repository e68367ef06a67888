/**
 * The first copy: parts of tables, read by several readers a source in shared snapshots, through the row router into one
 * COPY per target shard. On each target a part is committed together with its checkpoint, so that what is there after a
 * death is there whole; a target that has a part already is not given it again.
 */
import { makeCopyOptions } from '../../copy/copy-options.js'
import { makeRowRouter } from '../../copy/row-router.js'
import { engineError, toEngineError } from '../../errors/engine-error.js'
import { copyOut } from '../../pg/copy-out.js'
import type { HostClient, HostTarget } from '../../pg/host-client.js'
import { quoteName } from '../../pg/sql-names.js'
import type { CopiedPart } from '../journal/copied-parts.js'
import { type MovePlan, type MoveTable, tableLabel } from '../move-table.js'
import { openShard, placeOf, type ReshardSide } from '../side.js'
import type { Pace } from './pace.js'
import { nameOfPart, type Part, partCondition } from './part.js'
import { ShardCopies } from './shard-copies.js'
import type { ReaderTransaction, SnapshotKeeper } from './snapshot-keeper.js'

export interface CopyPartsOptions {
  readonly run: string
  readonly plan: MovePlan
  readonly parts: readonly Part[]
  /** By target shard: names of the parts that it has. */
  readonly present: readonly ReadonlySet<string>[]
  readonly target: ReshardSide
  /** By source shard: the servers to read, each with its snapshots. */
  readonly readers: readonly (readonly PartReader[])[]
  /** Readers a source shard. */
  readonly jobs: number
  readonly binary: boolean
  readonly replicaRole: boolean
  readonly onPart: (part: Part, copied: CopiedPart) => Promise<void> | void
  /** Bytes just read of a table. */
  readonly onBytes?: (table: MoveTable, bytes: number) => void
  readonly pace?: Pace | undefined
  /** Called before a part is committed anywhere, and when its first target has committed. */
  readonly point?: (name: 'rows' | 'half') => Promise<void>
  /** Breaks off. */
  readonly signal?: AbortSignal
}

/** A server to read a source shard from. */
export interface PartReader {
  readonly target: HostTarget
  readonly snapshots: Pick<SnapshotKeeper, 'prepare' | 'enter'>
}

interface Reader {
  readonly options: CopyPartsOptions
  readonly source: HostTarget
  readonly client: HostClient
  readonly targets: readonly HostClient[]
}

/** Copies what is not there yet; rejects when one part fails, after all readers have ended. @throws RESHARD_COPY */
export async function copyParts(options: CopyPartsOptions): Promise<void> {
  const isMissing = (part: Part): boolean =>
    options.present.some((names) => !names.has(nameOfPart(part)))
  const waiting = options.readers.map((_, shard) =>
    options.parts
      .filter((part) => part.source === shard && isMissing(part))
      // Taken from the end: large tables first, each in the order of its keys.
      .sort((a, b) => a.table.bytes - b.table.bytes || b.part - a.part),
  )
  const wanted = options.readers.flatMap((servers, shard) => {
    const mine = waiting[shard] as Part[]
    const count = Math.min(options.jobs, mine.length)
    return Array.from({ length: count }, (_, i) => {
      return { server: servers[i % servers.length] as PartReader, mine }
    })
  })
  // All before the first row: where sources and targets share a server, a slot would wait for the COPY of another source.
  const prepared = Promise.all(wanted.map(({ server }) => server.snapshots.prepare()))
  prepared.catch(() => undefined)
  const readers = wanted.map(({ server, mine }) =>
    readParts(options, server, mine, waiting, prepared),
  )
  for (const end of await Promise.allSettled(readers)) {
    if (end.status === 'rejected') throw end.reason
  }
}

async function readParts(
  options: CopyPartsOptions,
  server: PartReader,
  mine: Part[],
  all: readonly Part[][],
  prepared: Promise<unknown>,
): Promise<void> {
  const opened: HostClient[] = []
  const open = async (target: HostTarget, settings = {}): Promise<HostClient> => {
    const client = await openShard(target, settings)
    opened.push(client)
    return client
  }
  try {
    const settings: Record<string, string> = {
      synchronous_commit: 'on',
      ...(options.replicaRole ? { session_replication_role: 'replica' } : {}),
    }
    const openings = [
      open(server.target),
      ...options.target.shards.map((target) => open(target, settings)),
    ]
    // All of them, before one that failed is told: what opens later would stay open.
    await Promise.allSettled(openings)
    const [client, ...targets] = (await Promise.all(openings)) as [HostClient, ...HostClient[]]
    await prepared
    let held: ReaderTransaction | undefined
    const reader = { options, source: server.target, client, targets }
    for (let part = mine.pop(); part; part = mine.pop()) {
      held = await server.snapshots.enter(client, held)
      await options.onPart(part, await copyPart(reader, part, held))
    }
  } catch (error) {
    // The others find nothing more to do and end too.
    for (const waiting of all) waiting.length = 0
    throw error
  } finally {
    await Promise.all(opened.map((client) => client.end().catch(() => undefined)))
  }
}

async function copyPart(reader: Reader, part: Part, seen: ReaderTransaction): Promise<CopiedPart> {
  const { options, client } = reader
  const { table, source } = part
  const name = nameOfPart(part)
  const isWanted = options.present.map((names) => !names.has(name))
  const writers = new ShardCopies(reader.targets, table, options.binary)
  try {
    const router = routerFor(options, table, (shard, bytes) => {
      if (isWanted[shard]) writers.take(shard, bytes)
    })
    const out = await copyOut(
      client,
      copyText(part, options.binary),
      (chunk) => {
        options.onBytes?.(table, chunk.length)
        router.push(chunk)
        const drained = writers.drained()
        const pause = options.pace?.take(chunk.length)
        return pause === undefined ? drained : pause.then(() => drained)
      },
      options.signal ? { signal: options.signal } : {},
    )
    router.finish()
    await writers.drained()
    const counts = await writers.finish()
    checkCounts(options, table, { read: out.rows, counts, routed: router.rowsPerShard, isWanted })
    const copied = {
      table: tableLabel(table),
      source,
      part: part.part,
      watermark: seen.watermark,
      rows: out.rows,
      bytes: out.bytes,
    }
    await options.point?.('rows')
    await writers.commit(options.run, copied, isWanted, () => options.point?.('half'))
    return copied
  } catch (error) {
    await writers.abort()
    const { message: reason, detail, code } = toEngineError(error)
    if (code === 'INTERRUPTED') throw error
    const where = { table: tableLabel(table), server: placeOf(reader.source), reason }
    throw engineError('RESHARD_COPY', where, {
      cause: error,
      ...(detail === undefined ? {} : { detail }),
    })
  }
}

function copyText(part: Part, binary: boolean): string {
  const { table } = part
  const columns = table.columns.map((column) => quoteName(column.name)).join(', ')
  const condition = [partCondition(part), table.moving ?? '']
    .filter((one) => one !== '')
    .join(' AND ')
  const rows =
    condition === ''
      ? `${table.sqlName} (${columns})`
      : `(SELECT ${columns} FROM ONLY ${table.sqlName} WHERE ${condition})`
  return `COPY ${rows} TO STDOUT (FORMAT ${binary ? 'binary' : 'text'})`
}

/** Every row that was read has been taken by the servers that it belongs to. */
function checkCounts(
  options: CopyPartsOptions,
  table: MoveTable,
  seen: {
    read: number
    counts: ReadonlyMap<number, number>
    routed: readonly number[]
    isWanted: readonly boolean[]
  },
): void {
  const { to } = table
  for (const shard of options.target.shards.keys()) {
    if (!seen.isWanted[shard]) continue
    let expected = seen.read
    if (to.kind === 'sharded') expected = seen.routed[shard] ?? 0
    else if (to.kind === 'unsharded' && to.shard !== shard) expected = 0
    const written = seen.counts.get(shard) ?? 0
    if (written !== expected) {
      throw new Error(`${expected} rows were read for shard ${shard}, ${written} written`)
    }
  }
}

function routerFor(
  options: CopyPartsOptions,
  table: MoveTable,
  take: (shard: number, bytes: Buffer) => void,
) {
  const { to } = table
  const columns = table.columns.map((column) => column.name)
  const layout = { table: tableLabel(table), columns }
  const copyOptions = makeCopyOptions({ format: options.binary ? 'binary' : 'text' })
  if (to.kind === 'sharded') {
    return makeRowRouter({
      options: copyOptions,
      layout: { ...layout, keyIndex: to.keyIndex },
      shardCount: options.plan.placeCount,
      placer: to.placer,
      onBatch: take,
    })
  }
  const only = to.kind === 'unsharded' ? to.shard : undefined
  return makeRowRouter({
    options: copyOptions,
    layout,
    shardCount: only === undefined ? options.plan.targetCount : 1,
    onBatch: (shard, bytes) => take(only ?? shard, bytes),
  })
}
