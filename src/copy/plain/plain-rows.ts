/**
 * Takes plain rows in WebAssembly (plain-code.ts): the arena of a row router in a memory that both sides see. Most rows of most
 * loads are plain; the splitters take the others one by one, so that all that is hard stays in one place.
 */
import { endianness } from 'node:os'
import type { KeyPlacer } from '../../sharding/key-placer.js'
import { type ArenaMemory, arenaBytes } from '../batch-arena.js'
import type { CopyOptions } from '../copy-options.js'
import type { CopyLayout } from '../copy-row.js'
import { MOST_BUCKETS, MOST_LANES, places, plainModule } from './plain-code.js'

/** What is used of the engine's WebAssembly, which Node's types leave out. */
declare const WebAssembly: {
  readonly Module: new (bytes: Uint8Array) => object
  readonly Instance: new (module: object, imports: object) => { readonly exports: Functions }
  readonly Memory: new (pages: {
    readonly initial: number
    readonly maximum: number
  }) => { readonly buffer: ArrayBuffer }
}

/** From a position in the input to the first row that was not taken; `line`: that of the row before. */
type Split = (at: number, end: number, line: number) => number
type Functions = Readonly<Record<'lines' | 'binary', Split>>

const PAGE_BYTES = 64 * 1024
const NOTE_BYTES = places.arena - places.notes
/** So far behind, a row does not fit into a note: it is not taken here. */
const FAR = 2 ** 30

const keyBytes: Readonly<Record<string, number>> = { smallint: 2, integer: 4, bigint: 8 }

interface PlainRequest {
  readonly options: CopyOptions
  readonly layout: CopyLayout
  readonly placer: KeyPlacer
  readonly lanes: number
  readonly inputBytes: number
  readonly lends: boolean
}

let compiled: object | undefined

export class PlainRows {
  readonly memory: ArenaMemory
  readonly #split: Split
  readonly #lastLines: Int32Array
  readonly #noteAts: Int32Array
  readonly #tables: Buffer
  readonly #noteBytes: number

  private constructor(request: PlainRequest) {
    const { inputBytes, lanes, lends, options } = request
    const size = arenaBytes(inputBytes, lanes, lends)
    // Rows are read and written some bytes beyond their ends.
    const pages = places.arena / PAGE_BYTES + Math.ceil(size / PAGE_BYTES) + 1
    const memory = new WebAssembly.Memory({ initial: pages, maximum: pages })
    compiled ??= new WebAssembly.Module(plainModule(1))
    const { exports } = new WebAssembly.Instance(compiled, { host: { memory } })
    this.#split = options.format === 'binary' ? exports.binary : exports.lines
    const table = (place: number) => new Int32Array(memory.buffer, place, lanes)
    this.memory = {
      bytes: Buffer.from(memory.buffer, places.arena, size),
      fills: table(places.fills),
      limits: table(places.limits),
    }
    this.#lastLines = table(places.lastLines)
    this.#noteAts = table(places.noteAts)
    this.#tables = Buffer.from(memory.buffer, 0, places.arena)
    this.#noteBytes = Math.floor(NOTE_BYTES / lanes)
    const noteLimits = table(places.noteLimits)
    for (let lane = 0; lane < lanes; lane++) {
      this.#noteAts[lane] = this.#notesOf(lane)
      noteLimits[lane] = this.#notesOf(lane) + this.#noteBytes
    }
    this.#configure(request)
  }

  /** Undefined: no row of this data is plain, or this machine cannot. */
  static open(request: PlainRequest): PlainRows | undefined {
    if (!isEligible(request)) return undefined
    try {
      return new PlainRows(request)
    } catch {
      // No SIMD, or no room for another memory: the splitters do all.
      return undefined
    }
  }

  /** Takes rows of the input; where the first begins that it leaves. */
  take(at: number, end: number, line: number): number {
    return this.#split(at, end, line)
  }

  /** The notes of a lane's rows that were taken, as LineMap reads them, borrowed; they are forgotten. Undefined: there are none. */
  notes(lane: number): Buffer | undefined {
    const from = this.#notesOf(lane)
    if (this.#noteAts[lane] === from) return undefined
    const notes = this.#tables.subarray(from, this.#noteAts[lane])
    this.#noteAts[lane] = from
    return notes
  }

  /** The last row of a lane, which was taken elsewhere. */
  setLine(lane: number, line: number): void {
    this.#lastLines[lane] = line
  }

  /** Behind `line` the next row of each lane is the first of a COPY: it is not taken here. */
  beginAnew(line: number): void {
    this.#lastLines.fill(line - FAR)
  }

  #notesOf(lane: number): number {
    return places.notes + lane * this.#noteBytes
  }

  #configure({ layout, options, placer }: PlainRequest): void {
    const { placement, keyType } = placer.table
    if (placement.kind !== 'hash') return
    const bytes = keyBytes[keyType] ?? 0
    const tables = this.#tables
    tables.writeInt32LE(options.delimiter, places.delimiter)
    tables.writeInt32LE(options.format === 'csv' ? options.quote : BACKSLASH, places.special)
    tables.writeInt32LE(layout.keyIndex ?? 0, places.keyIndex)
    tables.writeInt32LE(layout.columns.length, places.columns)
    tables.writeInt32LE(bytes, places.keyBytes)
    tables.writeBigInt64LE(BigInt(placement.buckets), places.buckets)
    tables.writeBigInt64LE((1n << BigInt(8 * bytes - 1)) - 1n, places.keyMost)
    for (const [bucket, shard] of placement.bucketMap.entries()) tables[places.map + bucket] = shard
  }
}

const BACKSLASH = 92

/** A digit or a minus: what a plain key begins with. */
const beginsNumber = (byte: number | undefined): boolean =>
  byte !== undefined && (byte === 45 || (byte >= 48 && byte <= 57))

function isEligible({ lanes, layout, options, placer }: PlainRequest): boolean {
  const { keyType, placement } = placer.table
  if (lanes > MOST_LANES || layout.keyIndex === undefined || !(keyType in keyBytes)) return false
  if (placement.kind !== 'hash' || placement.hasher !== 'postgres') return false
  if (placement.buckets > MOST_BUCKETS || endianness() !== 'LE') return false
  if (placement.bucketMap.some((shard) => shard >= lanes)) return false
  if (options.format === 'binary') return true
  const marks = [options.nullMark[0], options.defaultMark?.[0], options.delimiter]
  return !marks.some(beginsNumber)
}
