/**
 * The first copy: every table of every source shard, read in the snapshot of the source's slot by several readers,
 * through the row router into one COPY per target shard. A table of a source is committed whole or not at all.
 */
import { makeCopyOptions } from '../../copy/copy-options.js'
import { makeRowRouter } from '../../copy/row-router.js'
import { engineError, toEngineError } from '../../errors/engine-error.js'
import { adminQuery } from '../../pg/admin-query.js'
import { type CopyIn, openCopyIn } from '../../pg/copy-in.js'
import { copyOut } from '../../pg/copy-out.js'
import type { HostClient } from '../../pg/host-client.js'
import { type MovePlan, type MoveTable, tableLabel, tablesOf } from '../move-table.js'
import { openShard, placeOf, type ReshardSide } from '../side.js'
import { quoteLiteral, quoteName } from '../sql-names.js'

export interface CopyTablesOptions {
  readonly plan: MovePlan
  readonly source: ReshardSide
  readonly target: ReshardSide
  /** Exported snapshot of each source shard. */
  readonly snapshots: readonly string[]
  /** Readers a source shard. */
  readonly jobs: number
  readonly binary: boolean
  readonly replicaRole: boolean
  readonly onTable: (event: TableCopied) => Promise<void> | void
  /** Bytes just read of a table. */
  readonly onBytes?: (table: MoveTable, bytes: number) => void
  /** Breaks off. */
  readonly signal?: AbortSignal
}

export interface TableCopied {
  readonly table: MoveTable
  readonly sourceShard: number
  readonly rows: number
  readonly bytes: number
}

interface Reader {
  readonly options: CopyTablesOptions
  readonly sourceShard: number
  readonly client: HostClient
  readonly targets: readonly HostClient[]
}

/** Copies everything; rejects when one table fails, after all readers have ended. @throws RESHARD_COPY */
export async function copyTables(options: CopyTablesOptions): Promise<TableCopied[]> {
  const done: TableCopied[] = []
  const readers = options.source.shards.flatMap((_, shard) => {
    const waiting = tablesOf(options.plan, shard).sort((a, b) => a.bytes - b.bytes)
    const count = Math.min(options.jobs, waiting.length)
    return Array.from({ length: count }, () => readTables(options, shard, waiting, done))
  })
  for (const end of await Promise.allSettled(readers)) {
    if (end.status === 'rejected') throw end.reason
  }
  return done
}

async function readTables(
  options: CopyTablesOptions,
  sourceShard: number,
  waiting: MoveTable[],
  done: TableCopied[],
): Promise<void> {
  const opened: HostClient[] = []
  const open = async (side: ReshardSide, shard: number, settings = {}): Promise<HostClient> => {
    const client = await openShard(side.shards[shard] as (typeof side.shards)[number], settings)
    opened.push(client)
    return client
  }
  try {
    const client = await open(options.source, sourceShard)
    const role: Record<string, string> = options.replicaRole
      ? { session_replication_role: 'replica' }
      : {}
    const targets: HostClient[] = []
    for (const shard of options.target.shards.keys()) {
      targets.push(await open(options.target, shard, role))
    }
    const snapshot = quoteLiteral(options.snapshots[sourceShard] as string)
    await adminQuery(client, 'BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
    await adminQuery(client, `SET TRANSACTION SNAPSHOT ${snapshot}`)
    for (let table = waiting.pop(); table; table = waiting.pop()) {
      const copied = await copyTable({ options, sourceShard, client, targets }, table)
      done.push(copied)
      await options.onTable(copied)
    }
  } catch (error) {
    // The others find nothing more to do and end too.
    waiting.length = 0
    throw error
  } finally {
    await Promise.all(opened.map((client) => client.end().catch(() => undefined)))
  }
}

async function copyTable(reader: Reader, table: MoveTable): Promise<TableCopied> {
  const { options, sourceShard } = reader
  const writers = new ShardCopies(reader, table)
  try {
    const router = routerFor(options, table, (shard, bytes) => writers.take(shard, bytes))
    const columns = table.columns.map((column) => quoteName(column.name)).join(', ')
    const format = options.binary ? 'binary' : 'text'
    const out = await copyOut(
      reader.client,
      `COPY ${table.sqlName} (${columns}) TO STDOUT (FORMAT ${format})`,
      (chunk) => {
        options.onBytes?.(table, chunk.length)
        router.push(chunk)
        return writers.drained()
      },
      options.signal ? { signal: options.signal } : {},
    )
    router.finish()
    await writers.drained()
    const written = await writers.commit()
    const copies = table.to.kind === 'reference' ? options.plan.targetCount : 1
    if (written !== out.rows * copies) {
      throw new Error(`${out.rows} rows were read, ${written} written`)
    }
    return { table, sourceShard, rows: out.rows, bytes: out.bytes }
  } catch (error) {
    await writers.abort()
    const from = options.source.shards[sourceShard] as (typeof options.source.shards)[number]
    const { message: reason, detail, code } = toEngineError(error)
    if (code === 'INTERRUPTED') throw error
    const where = { table: tableLabel(table), server: placeOf(from), reason }
    throw engineError('RESHARD_COPY', where, {
      cause: error,
      ...(detail === undefined ? {} : { detail }),
    })
  }
}

function routerFor(
  options: CopyTablesOptions,
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
      shardCount: options.plan.targetCount,
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

/** The COPY of one table into the target shards that get rows of it, each in a transaction of its own. */
class ShardCopies {
  readonly #reader: Reader
  readonly #sql: string
  readonly #copies = new Map<number, Promise<CopyIn>>()
  #pending: Promise<unknown>[] = []

  constructor(reader: Reader, table: MoveTable) {
    const columns = table.columns.map((column) => quoteName(column.name)).join(', ')
    const format = reader.options.binary ? 'binary' : 'text'
    this.#reader = reader
    this.#sql = `COPY ${table.sqlName} (${columns}) FROM STDIN (FORMAT ${format})`
  }

  take(shard: number, bytes: Buffer): void {
    let copy = this.#copies.get(shard)
    if (!copy) {
      copy = this.#open(shard)
      copy.catch(() => undefined)
      this.#copies.set(shard, copy)
    }
    const written = copy.then((open) => open.write(bytes))
    written.catch(() => undefined)
    this.#pending.push(written)
  }

  /** Resolves when the targets take more; rejects with the first failure. */
  drained(): Promise<void> | undefined {
    if (this.#pending.length === 0) return undefined
    const pending = this.#pending
    this.#pending = []
    return Promise.all(pending).then(() => undefined)
  }

  /** Ends all COPYs, then commits; the number of rows that the targets counted. */
  async commit(): Promise<number> {
    const copies = await Promise.all(this.#copies.values())
    const counts = await Promise.all(copies.map((copy) => copy.finish()))
    for (const shard of this.#copies.keys()) await adminQuery(this.#target(shard), 'COMMIT')
    return counts.reduce((sum, count) => sum + count, 0)
  }

  async abort(): Promise<void> {
    for (const [shard, opening] of this.#copies) {
      const copy = await opening.catch(() => undefined)
      await copy?.fail('another shard failed')
      await this.#target(shard)
        .query('ROLLBACK')
        .catch(() => undefined)
    }
  }

  async #open(shard: number): Promise<CopyIn> {
    const client = this.#target(shard)
    await adminQuery(client, 'BEGIN')
    return openCopyIn(client, this.#sql)
  }

  #target(shard: number): HostClient {
    return this.#reader.targets[shard] as HostClient
  }
}
