/**
 * The rows of a table on all shards into one file: one header, one signature, one trailer. Shards follow one another, or are
 * merged by a column. The file appears under its name when it is complete.
 */

import { once } from 'node:events'
import { createWriteStream, renameSync, rmSync } from 'node:fs'
import { finished } from 'node:stream/promises'
import { createGzip } from 'node:zlib'
import type pg from 'pg'
import type { CopyOptions } from '../../copy/copy-options.js'
import { engineError } from '../../errors/engine-error.js'
import { closePg } from '../../pg/admin-query.js'
import { connectPg } from '../../pg/connect.js'
import { copyOut } from '../../pg/copy-out.js'
import { BINARY_HEAD, BINARY_TAIL } from '../batches/part-data.js'
import { type CopyTable, checkColumns, copyOutSql, readCopyTable } from '../copy-target.js'
import type { LoadReport } from '../load-report.js'
import type { LoadPlacement } from '../request/load-placement.js'
import type { LoadWatch } from '../request/load-request.js'
import { mergeRows, orderOf, ShardRows } from './shard-rows.js'

export interface ExportRequest {
  readonly path: string
  readonly isPacked: boolean
  readonly urls: readonly string[]
  readonly table: string
  readonly columns?: readonly string[]
  readonly options: CopyOptions
  readonly orderBy?: string
  readonly placementOf: (table: CopyTable) => LoadPlacement
}

/** @throws the first failure; the file is not there then */
export async function exportShards(request: ExportRequest, watch: LoadWatch): Promise<LoadReport> {
  const startedMs = watch.clock.monotonicMs()
  const clients: pg.Client[] = []
  const sink = new FileSink(request.path, request.isPacked)
  try {
    clients.push(await connectPg(request.urls[0] as string))
    const table = await readCopyTable(clients[0] as pg.Client, request.table, 0)
    const placement = request.placementOf(table)
    const targets = targetsOf(placement, request.urls.length)
    for (const shard of targets) clients.push(await connectPg(request.urls[shard] as string))
    const counts = await new Export(request, watch, table, sink).run(clients.slice(1))
    await sink.complete()
    const shards = targets.map((shard, index) => ({ shard, ...(counts[index] as ShardCount) }))
    const rows = shards.reduce((sum, one) => sum + one.rows, 0)
    const elapsedMs = watch.clock.monotonicMs() - startedMs
    const rest = { rejected: 0, shards, elapsedMs, isReference: false, isDryRun: false }
    return { read: rows, written: rows, ...rest }
  } catch (error) {
    sink.discard()
    throw error
  } finally {
    await Promise.all(clients.map((client) => closePg(client)))
  }
}

/** A reference table is whole on each shard: one is asked. */
function targetsOf(placement: LoadPlacement, shardCount: number): number[] {
  if (placement.kind === 'unsharded') return [placement.shard]
  if (placement.kind === 'reference') return [0]
  return Array.from({ length: shardCount }, (_, shard) => shard)
}

interface ShardCount {
  rows: number
  bytes: number
}

class Export {
  readonly #request: ExportRequest
  readonly #watch: LoadWatch
  readonly #table: CopyTable
  readonly #sink: FileSink
  readonly #columns: readonly string[]

  constructor(request: ExportRequest, watch: LoadWatch, table: CopyTable, sink: FileSink) {
    this.#request = request
    this.#watch = watch
    this.#table = table
    this.#sink = sink
    this.#columns = request.columns ?? table.columns.map(({ name }) => name)
    checkColumns(table, this.#columns)
  }

  async run(clients: readonly pg.Client[]): Promise<ShardCount[]> {
    const isBinary = this.#request.options.format === 'binary'
    if (isBinary) await this.#sink.write(BINARY_HEAD)
    const counts =
      this.#request.orderBy === undefined
        ? await this.#inTurn(clients)
        : await this.#merged(clients, this.#request.orderBy)
    if (isBinary) await this.#sink.write(BINARY_TAIL)
    return counts
  }

  async #inTurn(clients: readonly pg.Client[]): Promise<ShardCount[]> {
    const counts: ShardCount[] = []
    for (const [index, client] of clients.entries()) {
      const frame = new FrameCutter(this.#request.options.format === 'binary')
      const { rows, bytes } = await copyOut(
        client,
        this.#sql(index === 0),
        async (chunk) => {
          this.#watch.onProgress(chunk.length, 0)
          const data = frame.cut(chunk)
          if (data.length > 0) await this.#sink.write(data)
        },
        { signal: this.#watch.signal },
      )
      counts.push({ rows, bytes })
      this.#watch.onProgress(0, rows)
    }
    return counts
  }

  async #merged(clients: readonly pg.Client[], orderBy: string): Promise<ShardCount[]> {
    checkColumns(this.#table, [orderBy])
    const keyIndex = this.#columns.indexOf(orderBy)
    if (keyIndex < 0) throw engineError('COPY_ORDER', { reason: `--columns lacks "${orderBy}"` })
    const type = this.#table.columns.find(({ name }) => name === orderBy)?.type ?? ''
    const order = orderOf(type)
    const shards = clients.map(
      (client, index) =>
        new ShardRows({
          client,
          sql: this.#sql(index === 0, { column: orderBy, collation: order.collation }),
          options:
            index === 0 ? this.#request.options : { ...this.#request.options, header: 'none' },
          layout: {
            table: this.#table.name,
            columns: this.#columns,
            keyIndex,
            serverMajor: this.#table.serverMajor,
            keyIsText: order.collation !== undefined,
          },
          signal: this.#watch.signal,
        }),
    )
    await mergeRows(shards, order, async (bytes, rows) => {
      this.#watch.onProgress(bytes.length, rows)
      await this.#sink.write(bytes)
    })
    return shards.map(({ rows, bytes }) => ({ rows, bytes }))
  }

  #sql(isFirst: boolean, order?: { column: string; collation: string | undefined }): string {
    const { options } = this.#request
    const own = isFirst ? options : { ...options, header: 'none' as const }
    return copyOutSql(this.#table, this.#columns, own, order)
  }
}

/** Takes signature and trailer off the binary data of one server; its chunks are cut anywhere. */
class FrameCutter {
  readonly #isBinary: boolean
  #toSkip = BINARY_HEAD.length
  /** The last two bytes so far, which may be the trailer. */
  #held = Buffer.alloc(0)

  constructor(isBinary: boolean) {
    this.#isBinary = isBinary
  }

  cut(chunk: Buffer): Buffer {
    if (!this.#isBinary) return chunk
    const skipped = Math.min(this.#toSkip, chunk.length)
    this.#toSkip -= skipped
    const data = Buffer.concat([this.#held, chunk.subarray(skipped)])
    const until = Math.max(0, data.length - BINARY_TAIL.length)
    this.#held = Buffer.from(data.subarray(until))
    return data.subarray(0, until)
  }
}

/** A file that is written beside its place and moved there when it is complete. */
class FileSink {
  readonly #path: string
  readonly #file
  readonly #stream

  constructor(path: string, isPacked: boolean) {
    this.#path = path
    this.#file = createWriteStream(`${path}.part`)
    const gzip = isPacked ? createGzip() : undefined
    gzip?.pipe(this.#file)
    this.#stream = gzip ?? this.#file
    this.#file.on('error', () => undefined)
  }

  async write(bytes: Buffer): Promise<void> {
    if (this.#file.errored !== null) throw this.#failed(this.#file.errored)
    // The chunk's memory is the reader's; the stream keeps it until it is written.
    if (!this.#stream.write(Buffer.from(bytes)))
      await once(this.#stream, 'drain').catch((error: unknown) => {
        throw this.#failed(error)
      })
  }

  async complete(): Promise<void> {
    this.#stream.end()
    await finished(this.#file).catch((error: unknown) => {
      throw this.#failed(error)
    })
    renameSync(`${this.#path}.part`, this.#path)
  }

  discard(): void {
    this.#stream.destroy()
    this.#file.destroy()
    rmSync(`${this.#path}.part`, { force: true })
  }

  #failed(error: unknown) {
    const reason = error instanceof Error ? error.message : String(error)
    return engineError('COPY_REJECT_FILE', { path: this.#path, reason }, { cause: error })
  }
}
