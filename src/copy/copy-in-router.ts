/**
 * COPY FROM STDIN of a client, spread over the shards of its table: the pure half. The executor owns the servers.
 *
 * How it is driven (nothing here waits, writes or keeps a timer):
 *   1. Send the client's COPY statement to every shard of the plan and await CopyInResponse from all. PostgreSQL checks the
 *      options there; relay its error as it is. Only then make a CopyInRouter, and answer the client with CopyInResponse.
 *   2. `push(body)` for the body of each CopyData of the client; the bytes are borrowed for the call. Before it returns it may
 *      call `onBatch(shard, bytes, rows)` any number of times: send `bytes` to that shard as CopyData (`copyDataHeader` gives
 *      the five bytes before it); they are owned by the callee, but shared between shards when the table is a reference table.
 *      When a server's socket is full, pause the client: at most one body's worth of batches comes after that.
 *   3. `finish()` at CopyDone: the last batches come, then send CopyDone to every shard. A shard may have had no row; it got
 *      header or signature all the same, so that its COPY ends well with `COPY 0`.
 *   4. The tag for the client is `COPY n` with `tagRows(server counts)`: of a sharded table the sum, of a reference table one
 *      shard's count (all must be equal). Take the servers' counts, not `rowsRouted`: a trigger, WHERE or ON_ERROR may drop rows.
 *   5. An error thrown by `push` or `finish` is an EngineError with PostgreSQL's SQLSTATE, wording and CONTEXT (`where`). The
 *      rows up to it have been handed out, so let PostgreSQL speak first: send CopyDone to all shards, await them, and report
 *      what stands first in the data (`firstFault`), a server's word before ours on the same line. Either way roll back every
 *      shard. Swallow the client's CopyData until CopyDone, CopyFail or Sync. A CopyFail of the client: CopyFail to all.
 *   6. A shard that fails while data flows: the others may have an earlier fault among the rows that are still on their way.
 *      `flush()`, then CopyFail to the others (CopyDone when `endsInReturn`), roll back all, report the first.
 * Line numbers in a server's CONTEXT count only what that shard got: `placeOf` knows the line of the data.
 */
import { engineError } from '../errors/engine-error.js'
import type { CopyEffect } from '../plan/effects.js'
import type { KeyPlacer } from '../sharding/key-placer.js'
import { parseCopyOptions } from './copy-options.js'
import { contextLine, LineMap, withContextLine } from './line-map.js'
import { makeRowRouter, type RowRouter } from './row-router.js'
import type { OnBatch, RowRouterOptions } from './row-router-options.js'

export interface CopyInTarget {
  readonly effect: CopyEffect
  /** The table's name, for messages. */
  readonly table: string
  /** The columns of the COPY in order: its list, or all that are neither dropped nor generated. */
  readonly columns: readonly string[]
  readonly shardCount: number
  /** Absent: a reference table. */
  readonly placer?: KeyPlacer
  /** Of rows that leave the key to its default. */
  readonly placesDefault?: RowRouterOptions['placesDefault']
  /** client_encoding of the session; UTF8 when absent. */
  readonly clientEncoding?: string
  /** Major version of the servers: `\.` means something else from 18 on. */
  readonly serverMajor: number
  readonly onBatch: OnBatch
}

/** A shard's lines that are remembered, a byte or two each: more than lie in the buffers on the way to its server. */
const LINE_BYTES = 2 << 20

const textTypes = new Set(['text', 'varchar', 'bpchar'])

export class CopyInRouter {
  readonly #router: RowRouter
  readonly #isReference: boolean
  /** By shard; of a reference table one for all. */
  readonly #lines: LineMap[]

  /** @throws 42601, 22023, 0A000 for options that cannot be split; COPY_KEY_ABSENT when the column list lacks the key */
  constructor(target: CopyInTarget) {
    const { placer, table, columns, shardCount, clientEncoding } = target
    const options = parseCopyOptions(target.effect)
    const keyIndex = placer === undefined ? -1 : columns.indexOf(placer.table.column)
    if (options.rejectLimit !== undefined && shardCount > 1)
      throw engineError('COPY_OPTION_UNSUPPORTED', {
        message: 'COPY REJECT_LIMIT cannot be counted over several shards',
      })
    this.#isReference = placer === undefined
    this.#lines = Array.from(
      { length: this.#isReference ? 1 : shardCount },
      () => new LineMap(LINE_BYTES),
    )
    this.#router = makeRowRouter({
      options,
      layout: {
        table,
        columns,
        serverMajor: target.serverMajor,
        ...(keyIndex < 0 ? {} : { keyIndex }),
        ...(placer === undefined ? {} : { keyIsText: textTypes.has(placer.table.keyType) }),
        ...(clientEncoding === undefined ? {} : { encoding: clientEncoding }),
      },
      shardCount,
      onBatch: target.onBatch,
      onHeader: (line) => {
        for (const map of this.#lines) map.take(line, line)
      },
      onRow: (shard, _, line, lines) => this.#lines[shard]?.take(line, lines),
      onPlainRows: (shard, notes) => this.#lines[shard]?.takeNotes(notes),
      ...(placer === undefined ? {} : { placer }),
      ...(target.placesDefault === undefined ? {} : { placesDefault: target.placesDefault }),
    })
  }

  /** Rows read so far, each once. */
  get rowsRouted(): number {
    return this.#router.rows
  }

  /** Line on which the client's data stands. */
  get line(): number {
    return this.#router.line
  }

  get endsInReturn(): boolean {
    return this.#router.endsInReturn
  }

  /** A server's CONTEXT with the line of the data, and that line; when it cannot be told, the shard is named. */
  placeOf(where: string, shard: number, shardCount: number): { where: string; line?: number } {
    const counted = contextLine(where)
    if (counted === undefined) return { where }
    const line = this.#lines[this.#isReference ? 0 : shard]?.lineOf(counted)
    return line === undefined
      ? { where: `${where}\nlines as counted by shard ${shard} of ${shardCount}` }
      : { where: withContextLine(where, line), line }
  }

  /** Body of a CopyData, borrowed. @throws EngineError, after which only `rowsRouted` may be asked */
  push(body: Buffer): void {
    this.#router.push(body)
  }

  /** Hands out what is buffered; for a client that pauses in mid-stream. */
  flush(): void {
    this.#router.flush()
  }

  /** CopyDone. @throws EngineError for data that ends inside a quote or a row */
  finish(): void {
    this.#router.finish()
  }

  /** Rows to name in `COPY n`, from the counts of the servers' CommandCompletes. */
  tagRows(serverRows: readonly number[]): number {
    return this.#isReference
      ? (serverRows[0] ?? 0)
      : serverRows.reduce((sum, rows) => sum + rows, 0)
  }
}

/** Tag and length that go before a batch: CopyData is `d`, Int32 length counting itself, bytes. */
export function copyDataHeader(batch: Buffer): Buffer {
  const header = Buffer.allocUnsafe(5)
  header[0] = 0x64
  header.writeInt32BE(batch.length + 4, 1)
  return header
}
