/**
 * A batch of the extended protocol, from Parse or Bind to Sync, that may come again with other parameters: knows it by its
 * bytes, and makes the unit for a server from them, without reading the messages one by one. What it does not know for
 * sure it denies; then they are read (extended-query.ts). For one shard: parameters decide no route.
 */
import { copyBytes } from '../../base/copy-bytes.js'
import type { Unit } from '../../executor/pipeline/pipelined-client.js'
import type { ServerConnection } from '../../server/server-connection.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import { frontend } from '../../wire/tags.js'
import type { ClientStatement, ClientStatements } from '../state/client-statements.js'
import { parseFrame, syncFrame } from './batch.js'
import { isSeenOnce, type PipelinedBatch } from './pipelined-batch.js'

/** Longer batches are read. */
const MOST_BYTES = 4096
const nothing = Buffer.alloc(0)

export class AlikeBatch {
  readonly statement: ClientStatement
  /** The client's Parse, if any. */
  readonly #parse: Buffer
  /** In the Bind, behind its length: no name of a portal, and that of the statement. */
  readonly #names: Buffer
  /** Describe, Execute and Sync. */
  readonly #tail: Buffer
  readonly #describes: SharedStatement | undefined
  /** Of the batch that matched last: where the parameters begin, and where its Bind ends. */
  #restStart = 0
  #bindEnd = 0
  #memory: Buffer = nothing

  private constructor(batch: PipelinedBatch) {
    const { bind, describePortal = nothing, execute } = batch
    this.statement = batch.statement
    this.#parse = batch.parse ?? nothing
    this.#names = bind.frame.subarray(5, bind.restStart)
    this.#tail = Buffer.concat([describePortal, execute.frame, syncFrame])
    this.#describes = batch.describePortal && batch.statement.shared
  }

  /** undefined: it is to be read each time. */
  static of(batch: PipelinedBatch): AlikeBatch | undefined {
    const size = (batch.parse?.length ?? 0) + batch.bind.frame.length
    if (batch.describesStatement || isSeenOnce(batch) || size > MOST_BYTES) return undefined
    // a second Parse of a name is an error
    if (batch.parse && batch.bind.statement !== '') return undefined
    return new AlikeBatch(batch)
  }

  /** The client's name means this statement, as its Parse says or as it was left. */
  isNamedIn(statements: ClientStatements): boolean {
    const name = this.#names.toString('utf8', 1, this.#names.length - 1)
    if (this.hasParse) statements.set(name, this.statement)
    return statements.get(name) === this.statement
  }

  get hasParse(): boolean {
    return this.#parse.length > 0
  }

  /** True when [start, end) is the same batch with other parameters, and its Bind is sound. */
  matches(buffer: Buffer, end: number): boolean {
    const bindAt = this.#parse.length
    const tailAt = end - this.#tail.length
    const restStart = bindAt + 5 + this.#names.length
    if (tailAt < restStart || end > MOST_BYTES || buffer[bindAt] !== frontend.bind) return false
    if (buffer.readInt32BE(bindAt + 1) !== tailAt - bindAt - 1) return false
    if (!isAt(this.#names, buffer, bindAt + 5) || !isAt(this.#tail, buffer, tailAt)) return false
    if (!isAt(this.#parse, buffer, 0) || !isSoundBind(buffer, restStart, tailAt)) return false
    this.#restStart = restStart
    this.#bindEnd = tailAt
    return true
  }

  /** `bytes` are those that matched last. */
  unitFor(server: ServerConnection, bytes: Buffer): Unit {
    const { shared } = this.statement
    const describes = this.#describes
    if (server.hasPrepared(shared)) {
      server.traffic.preparedHits++
      const length = this.#write(nothing, shared.serverName, bytes)
      return { bytes: this.#memory, length, insertsParse: this.hasParse, describes }
    }
    const types = server.typesHere(shared.parameterTypes)
    const parse = parseFrame(shared.serverName, shared.text, types)
    const length = this.#write(parse, shared.serverName, bytes)
    const hidesParse = !this.hasParse
    return { bytes: this.#memory, length, prepares: shared, hidesParse, describes }
  }

  #write(parse: Buffer, name: string, bytes: Buffer): number {
    const rest = this.#bindEnd - this.#restStart
    const bindBytes = 7 + name.length + rest
    const size = parse.length + bindBytes + this.#tail.length
    if (size > this.#memory.length) this.#memory = Buffer.allocUnsafeSlow(size + 64)
    const memory = this.#memory
    let at = copyBytes(parse, 0, parse.length, memory, 0)
    memory[at] = frontend.bind
    memory.writeInt32BE(bindBytes - 1, at + 1)
    memory[at + 5] = 0
    at += 6
    for (let i = 0; i < name.length; i++) memory[at++] = name.charCodeAt(i)
    memory[at++] = 0
    at = copyBytes(bytes, this.#restStart, this.#bindEnd, memory, at)
    return copyBytes(this.#tail, 0, this.#tail.length, memory, at)
  }
}

function isAt(piece: Buffer, buffer: Buffer, at: number): boolean {
  for (let i = 0; i < piece.length; i++) if (buffer[at + i] !== piece[i]) return false
  return true
}

/** Formats, values and formats of the result at [from, end), which they fill. */
function isSoundBind(buffer: Buffer, from: number, end: number): boolean {
  if (from + 2 > end) return false
  let at = from + 2 + buffer.readUInt16BE(from) * 2
  if (at + 2 > end) return false
  const count = buffer.readUInt16BE(at)
  at += 2
  for (let i = 0; i < count; i++) {
    if (at + 4 > end) return false
    at += 4 + Math.max(buffer.readInt32BE(at), 0)
  }
  return at + 2 <= end && at + 2 + buffer.readUInt16BE(at) * 2 === end
}
