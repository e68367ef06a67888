/** Rows of several servers in the order of a column: each server sorts, here the heads are compared. */
import type pg from 'pg'
import { type Deferred, deferred } from '../../base/deferred.js'
import type { CopyOptions } from '../../copy/copy-options.js'
import type { CopyLayout, RowKey, RowSink } from '../../copy/copy-row.js'
import { makeRowSplitter } from '../../copy/row-splitter.js'
import { engineError } from '../../errors/engine-error.js'
import { copyOut } from '../../pg/copy-out.js'

/** Undefined is NULL, which comes last. */
type Key = bigint | Buffer | undefined

export interface RowOrder {
  /** What the servers must sort text by, so that bytes compare as they do. */
  readonly collation: string | undefined
  readonly kind: 'integer' | 'bytes'
}

/** @throws COPY_ORDER for types that cannot be compared here */
export function orderOf(type: string): RowOrder {
  if (/^(bigint|integer|smallint)$/.test(type)) return { kind: 'integer', collation: undefined }
  if (type === 'uuid') return { kind: 'bytes', collation: undefined }
  if (/^(text|character varying)$/.test(type)) return { kind: 'bytes', collation: 'C' }
  throw engineError('COPY_ORDER', {
    reason: `type ${type} cannot be merged (bigint, integer, smallint, uuid, text and varchar can)`,
  })
}

interface Row {
  readonly bytes: Buffer
  readonly key: Key
}

export interface ShardRowsOptions {
  readonly client: pg.Client
  readonly sql: string
  readonly options: CopyOptions
  readonly layout: CopyLayout
  readonly signal: AbortSignal
}

export class ShardRows {
  rows = 0
  bytes = 0
  readonly #options: ShardRowsOptions
  #kind: RowOrder['kind'] = 'bytes'
  #queue: Row[] = []
  #at = 0
  #isOver = false
  #error: unknown
  /** Resolved when rows have come, or the end. */
  #filled: Deferred<void> = deferred()
  /** Resolved when the rows that are here have been taken. */
  #taken: Deferred<void> | undefined

  constructor(options: ShardRowsOptions) {
    this.#options = options
  }

  start(kind: RowOrder['kind'], onHeader: (bytes: Buffer) => void): void {
    this.#kind = kind
    const { client, layout, options, signal, sql } = this.#options
    const splitter = makeRowSplitter(options, layout)
    const sink: RowSink = {
      header: (bytes, start, end) => {
        if (options.format !== 'binary') onHeader(Buffer.from(bytes.subarray(start, end)))
      },
      row: (bytes, start, end, key) =>
        this.#queue.push({ bytes: Buffer.from(bytes.subarray(start, end)), key: this.#keyOf(key) }),
    }
    const read = copyOut(
      client,
      sql,
      async (chunk) => {
        splitter.push(chunk, sink)
        if (this.#queue.length === 0) return
        this.#taken = deferred()
        this.#filled.resolve()
        await this.#taken.promise
      },
      { signal },
    )
    read
      .then(() => splitter.finish(sink))
      .catch((error: unknown) => {
        this.#error = error
      })
      .finally(() => {
        this.#isOver = true
        this.#filled.resolve()
      })
  }

  /** The next row, or undefined at the end. */
  async head(): Promise<Row | undefined> {
    while (this.#at === this.#queue.length) {
      if (this.#error !== undefined) throw this.#error
      if (this.#isOver) return undefined
      this.#queue = []
      this.#at = 0
      this.#filled = deferred()
      this.#taken?.resolve()
      await this.#filled.promise
    }
    return this.#queue[this.#at]
  }

  /** True: the next row is here already, so that `head` need not be waited for. */
  get isReady(): boolean {
    return this.#at < this.#queue.length
  }

  peek(): Row | undefined {
    return this.#queue[this.#at]
  }

  take(): void {
    const row = this.#queue[this.#at++]
    this.rows++
    this.bytes += row?.bytes.length ?? 0
  }

  #keyOf(key: RowKey): Key {
    if (key.kind !== 'value') return undefined
    const { bytes, start, end } = key
    if (this.#kind === 'bytes') return Buffer.from(bytes.subarray(start, end))
    if (this.#options.options.format !== 'binary')
      return BigInt(bytes.toString('latin1', start, end))
    if (end - start === 8) return bytes.readBigInt64BE(start)
    return BigInt(end - start === 4 ? bytes.readInt32BE(start) : bytes.readInt16BE(start))
  }
}

function compare(a: Key, b: Key): number {
  if (a === undefined || b === undefined) return Number(a === undefined) - Number(b === undefined)
  if (Buffer.isBuffer(a)) return a.compare(b as Buffer)
  const difference = a - (b as bigint)
  return difference < 0n ? -1 : Number(difference > 0n)
}

const WRITE_BYTES = 64 * 1024

/** The shard whose head comes first; those at their end leave `open`. */
async function leastOf(open: Set<ShardRows>): Promise<ShardRows | undefined> {
  let least: ShardRows | undefined
  for (const shard of open) {
    if (!shard.isReady && (await shard.head()) === undefined) open.delete(shard)
    else if (least === undefined || compare(shard.peek()?.key, least.peek()?.key) < 0) least = shard
  }
  return least
}

/** Gives the rows of all shards in order, many at once. */
export async function mergeRows(
  shards: readonly ShardRows[],
  order: RowOrder,
  write: (bytes: Buffer, rows: number) => Promise<void>,
): Promise<void> {
  let pieces: Buffer[] = []
  let length = 0
  const add = (bytes: Buffer) => {
    pieces.push(bytes)
    length += bytes.length
  }
  const flush = async () => {
    const bytes = Buffer.concat(pieces)
    const rows = pieces.length
    pieces = []
    length = 0
    if (bytes.length > 0) await write(bytes, rows)
  }
  for (const shard of shards) shard.start(order.kind, add)
  const open = new Set(shards)
  for (let next = await leastOf(open); next !== undefined; next = await leastOf(open)) {
    add(next.peek()?.bytes ?? Buffer.alloc(0))
    next.take()
    if (length >= WRITE_BYTES) await flush()
  }
  await flush()
}
