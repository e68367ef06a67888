/**
 * Where COPY data is read from: files, patterns and standard input, plain or compressed.
 * Chunks are lent one at a time, so that a slow reader stops the file and not the memory.
 */
import { createReadStream, statSync } from 'node:fs'
import { open, readdir } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { pipeline, Readable, type Transform } from 'node:stream'
import * as zlib from 'node:zlib'
import { engineError, isEngineError } from '../../errors/engine-error.js'
import { fileChunks } from './file-chunks.js'

export type Compression = 'auto' | 'none' | 'gzip' | 'zstd'

export interface CopyInput {
  readonly name: string
  /** Bytes on disk; absent for standard input. */
  readonly sizeBytes?: number
  /** A plain file, or the stretch of it that is read. */
  readonly file?: { readonly path: string; readonly start?: number; readonly end?: number }
  /** The first megabyte, of what can be read but once. */
  readonly sample?: Buffer
  open(): Readable
}

const READ_BYTES = 128 * 1024

/** Inputs by what the user wrote: a path, `-`, or a pattern with * and ? in its last part. @throws FILE_MISSING */
export async function listInputs(words: readonly string[]): Promise<CopyInput[]> {
  const inputs: CopyInput[] = []
  for (const word of words) {
    if (word === '-') inputs.push({ name: 'standard input', open: () => process.stdin })
    else for (const path of await expand(word)) inputs.push(openFile(path))
  }
  return inputs
}

async function expand(word: string): Promise<string[]> {
  const pattern = basename(word)
  if (!/[*?]/.test(pattern) || isFile(word)) return [word]
  const source = pattern
    .replace(/[.+^${}()|[\]\\]/g, '\\$&')
    .replaceAll('*', '.*')
    .replaceAll('?', '.')
  const names = await readdir(dirname(word)).catch(() => [])
  const found = names.filter((name) => new RegExp(`^${source}$`).test(name)).sort()
  if (found.length === 0)
    throw engineError('FILE_MISSING', { path: word, reason: 'no file matches the pattern' })
  return found.map((name) => join(dirname(word), name))
}

function isFile(path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.isFile() === true
}

function openFile(path: string): CopyInput {
  const stat = statSync(path, { throwIfNoEntry: false })
  if (stat === undefined)
    throw engineError('FILE_MISSING', { path, reason: 'no such file or directory' })
  if (stat.isDirectory()) throw engineError('FILE_MISSING', { path, reason: 'is a directory' })
  const open = () => createReadStream(path, { highWaterMark: READ_BYTES })
  return stat.isFile()
    ? { name: path, sizeBytes: stat.size, file: { path }, open }
    : { name: path, open }
}

/**
 * The data of an input, unpacked; each chunk is lent until the next is asked for. `onRead` hears how many bytes of the input
 * itself have been read.
 * @throws COPY_INPUT_BROKEN
 */
export async function* readChunks(
  input: CopyInput,
  compression: Compression,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  try {
    const { file } = input
    if (file !== undefined && (await isPlain(file.path, compression)))
      // Of what has no size, such as a file of the system, all that comes.
      yield* countChunks(
        fileChunks(file.path, file.start, file.end ?? (input.sizeBytes || undefined)),
        onRead,
      )
    else yield* unpackedStream(input, compression, onRead)
  } catch (error) {
    if (isEngineError(error)) throw error
    const reason = error instanceof Error ? error.message : String(error)
    throw engineError('COPY_INPUT_BROKEN', { name: input.name, reason }, { cause: error })
  }
}

async function isPlain(path: string, compression: Compression): Promise<boolean> {
  if (compression !== 'auto') return compression === 'none'
  const file = await open(path)
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(4), 0, 4, 0)
    return detect(buffer.subarray(0, bytesRead)) === 'none'
  } finally {
    await file.close()
  }
}

async function* unpackedStream(
  input: CopyInput,
  compression: Compression,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  const source = input.open()
  try {
    const raw = countChunks(source as AsyncIterable<Buffer>, onRead)
    const { head, rest } = await peek(raw, 4)
    yield* unpack(rest, compression === 'auto' ? detect(head) : compression)
  } finally {
    source.destroy()
  }
}

async function* countChunks(
  chunks: AsyncIterable<Buffer>,
  onRead: (bytes: number) => void,
): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    onRead(chunk.length)
    yield chunk
  }
}

/** The first bytes (at least `count` when there are so many), and a sequence that begins with them again. */
export async function peek(
  chunks: AsyncGenerator<Buffer>,
  count: number,
  isEnough: (head: Buffer) => boolean = () => true,
): Promise<{ head: Buffer; rest: AsyncGenerator<Buffer> }> {
  let head = Buffer.alloc(0)
  while (head.length < count || !isEnough(head)) {
    const next = await chunks.next()
    if (next.done === true) break
    head = Buffer.concat([head, next.value])
  }
  return { head, rest: chain(head, chunks) }
}

async function* chain(head: Buffer, rest: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  if (head.length > 0) yield head
  yield* rest
}

function detect(head: Buffer): Compression {
  if (head[0] === 0x1f && head[1] === 0x8b) return 'gzip'
  return head.length >= 4 && head.readUInt32LE(0) === 0xfd2fb528 ? 'zstd' : 'none'
}

function unpack(chunks: AsyncGenerator<Buffer>, kind: Compression): AsyncGenerator<Buffer> {
  if (kind === 'gzip') return through(chunks, zlib.createGunzip({ chunkSize: READ_BYTES }))
  if (kind !== 'zstd') return chunks
  // Node has it from 22.15 on.
  const native = (zlib as { createZstdDecompress?: () => Transform }).createZstdDecompress
  return native === undefined ? unzstd(chunks) : through(chunks, native())
}

async function* through(
  chunks: AsyncGenerator<Buffer>,
  unpacker: Transform,
): AsyncGenerator<Buffer> {
  // An error of either side destroys the other; the loop below throws it.
  pipeline(Readable.from(chunks, { highWaterMark: 2 }), unpacker, () => undefined)
  yield* unpacker as AsyncIterable<Buffer>
}

async function* unzstd(chunks: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  // Loaded only here: most inputs are not packed so.
  const { Decompress } = await import('fzstd')
  let unpacked: Uint8Array[] = []
  const decoder = new Decompress((piece) => unpacked.push(piece))
  for await (const chunk of chunks) {
    decoder.push(chunk)
    yield* drain(unpacked)
    unpacked = []
  }
  decoder.push(new Uint8Array(0), true)
  yield* drain(unpacked)
}

function* drain(pieces: readonly Uint8Array[]): Generator<Buffer> {
  for (const piece of pieces)
    if (piece.length > 0) yield Buffer.from(piece.buffer, piece.byteOffset, piece.length)
}
