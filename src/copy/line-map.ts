/**
 * Which line of the data a server means: it counts only the lines of the rows that its shard got. A row costs a byte or two,
 * and what lies far behind is forgotten: a server speaks of rows that it has just read, not of those before its buffers.
 */

const CHUNK_BYTES = 32 * 1024
/** Two numbers of at most eight bytes each. */
const LONGEST_ENTRY = 16

/** Lines before its first row, of the shard and of the data. */
interface Chunk {
  readonly bytes: Buffer
  length: number
  readonly shardLine: number
  readonly line: number
}

export class LineMap {
  readonly #mostChunks: number
  readonly #chunks: Chunk[] = []
  #last: Chunk | undefined
  #shardLine = 0
  #line = 0

  /** `mostBytes`: how much is kept. */
  constructor(mostBytes = Number.POSITIVE_INFINITY) {
    this.#mostChunks = Math.max(2, Math.ceil(mostBytes / CHUNK_BYTES))
  }

  /** The shard gets a row (or the header) that ends on `line` of the data and is `lines` lines to its server. */
  take(line: number, lines: number): void {
    let chunk = this.#last
    if (chunk === undefined || chunk.length + LONGEST_ENTRY > CHUNK_BYTES) chunk = this.#begin()
    const isSingle = lines === 1
    const gap = line - this.#line
    if (isSingle && gap < 0x40) {
      chunk.bytes[chunk.length++] = gap * 2
      this.#line = line
      this.#shardLine++
      return
    }
    chunk.length = writeNumber(chunk.bytes, chunk.length, gap * 2 + (isSingle ? 0 : 1))
    if (!isSingle) chunk.length = writeNumber(chunk.bytes, chunk.length, lines)
    this.#line = line
    this.#shardLine += lines
  }

  /** Several rows of one line each, as `take` would have noted them: a byte each, twice the lines since the row before. */
  takeNotes(notes: Buffer): void {
    for (let from = 0; from < notes.length; ) {
      let chunk = this.#last
      if (chunk === undefined || chunk.length + LONGEST_ENTRY > CHUNK_BYTES) chunk = this.#begin()
      const to = Math.min(notes.length, from + CHUNK_BYTES - LONGEST_ENTRY + 1 - chunk.length)
      notes.copy(chunk.bytes, chunk.length, from, to)
      chunk.length += to - from
      this.#shardLine += to - from
      let doubled = 0
      for (let at = from; at < to; at++) doubled += notes[at] as number
      this.#line += doubled / 2
      from = to
    }
  }

  /** The line of the data that the shard's server knows as `shardLine`; undefined: forgotten, or none. */
  lineOf(shardLine: number): number | undefined {
    const chunk = this.#chunks.findLast((one) => one.shardLine < shardLine)
    if (chunk === undefined) return undefined
    let { line, shardLine: seen } = chunk
    for (let at = 0; at < chunk.length; ) {
      const [first, next] = readNumber(chunk.bytes, at)
      line += Math.floor(first / 2)
      if (first % 2 === 0) {
        seen++
        at = next
      } else {
        const [lines, behind] = readNumber(chunk.bytes, next)
        seen += lines
        at = behind
      }
      if (seen >= shardLine) return line - (seen - shardLine)
    }
    return undefined
  }

  #begin(): Chunk {
    const chunk = {
      bytes: Buffer.allocUnsafeSlow(CHUNK_BYTES),
      length: 0,
      shardLine: this.#shardLine,
      line: this.#line,
    }
    this.#chunks.push(chunk)
    this.#last = chunk
    if (this.#chunks.length > this.#mostChunks) this.#chunks.shift()
    return chunk
  }
}

/** Seven bits a byte, lowest first; the end of the number. */
function writeNumber(bytes: Buffer, at: number, number: number): number {
  let rest = number
  let end = at
  while (rest >= 0x80) {
    bytes[end++] = (rest % 0x80) + 0x80
    rest = Math.floor(rest / 0x80)
  }
  bytes[end++] = rest
  return end
}

function readNumber(bytes: Buffer, at: number): [number: number, end: number] {
  let number = 0
  let factor = 1
  let end = at
  for (;;) {
    const byte = bytes[end++] as number
    number += (byte % 0x80) * factor
    if (byte < 0x80) return [number, end]
    factor *= 0x80
  }
}

/** `COPY t, line 5, column a: "x"`, in any language that puts the word before the number. */
const CONTEXT_LINE = /^(COPY .*?, \p{L}+ )(\d+)/mu

/** The line that a CONTEXT of COPY names. */
export function contextLine(where: string | undefined): number | undefined {
  const line = CONTEXT_LINE.exec(where ?? '')?.[2]
  return line === undefined ? undefined : Number(line)
}

/** The CONTEXT with another line. */
export const withContextLine = (where: string, line: number): string =>
  where.replace(CONTEXT_LINE, (_, before: string) => `${before}${line}`)

/** A failure of one of several shards, or ours; `line` of the data, when it can be told. */
export interface LineFault<E> {
  readonly error: E
  readonly line: number | undefined
}

/** A fault that we have found ourselves; what has no line is wrong with the beginning of the data. */
export const ownFault = <E extends { readonly where: string | undefined }>(
  error: E,
): LineFault<E> => ({ error, line: contextLine(error.where) ?? 0 })

/**
 * What one server would have said: the fault that stands first in the data; among equals the first given. Faults without a
 * line come last: they are found when all rows have been read (deferred triggers, foreign keys).
 */
export function firstFault<E>(faults: readonly LineFault<E>[]): LineFault<E> | undefined {
  const lineOf = (fault: LineFault<E>) => fault.line ?? Number.POSITIVE_INFINITY
  let first: LineFault<E> | undefined
  for (const fault of faults)
    if (first === undefined || lineOf(fault) < lineOf(first)) first = fault
  return first
}
