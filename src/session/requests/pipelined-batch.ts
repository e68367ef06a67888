/** One statement of the extended protocol as a whole unit for a shared server: Parse where the server lacks it, Bind, Execute, Sync. */
import type { Unit } from '../../executor/pipeline/pipelined-client.js'
import type { ServerConnection } from '../../server/server-connection.js'
import type { ClientStatement } from '../state/client-statements.js'
import {
  type BatchItem,
  type BindItem,
  type ExecuteItem,
  type MalformedItem,
  namedFrame,
  parseFrame,
  syncFrame,
} from './batch.js'

/** A resolved message; without an item it is an error. */
export interface Step {
  readonly item?: BatchItem
  readonly statement?: ClientStatement | undefined
}

export interface PipelinedBatch {
  readonly statement: ClientStatement
  /** The client sent a Parse of it. */
  readonly parse: Buffer | undefined
  readonly describesStatement: boolean
  readonly bind: BindItem
  readonly describePortal: Buffer | undefined
  readonly execute: ExecuteItem
}

/** Order in which the messages of a unit stand. */
const ORDER = { parse: 1, describeStatement: 2, bind: 3, describePortal: 4, execute: 5 } as const

/** A statement comes to be prepared under a shared name when its text was seen this often. */
const SEEN_TO_SHARE = 2

type ReadItem = Exclude<BatchItem, MalformedItem>

/** A unit while its messages are looked at. */
class Collected {
  statement: ClientStatement | undefined
  parse: Buffer | undefined
  describesStatement = false
  bind: BindItem | undefined
  describePortal: Buffer | undefined
  execute: ExecuteItem | undefined
  #last = 0

  /** False: it does not belong into a unit, or not here. */
  take(item: ReadItem, statement: ClientStatement): boolean {
    const place = placeOf(item)
    if (place <= this.#last || (this.statement && statement !== this.statement)) return false
    this.#last = place
    this.statement = statement
    if (item.kind === 'parse') this.parse = item.frame
    else if (item.kind === 'bind') this.bind = item
    else if (item.kind === 'execute') this.execute = item
    else if (item.what === 'P') this.describePortal = item.frame
    else this.describesStatement = true
    return true
  }
}

/** The steps as one unit: one Bind and one Execute of one statement, to the end; undefined when they are anything else. */
export function pipelinedBatchOf(steps: readonly Step[]): PipelinedBatch | undefined {
  const collected = new Collected()
  for (const { item, statement } of steps) {
    if (!item || item.kind === 'malformed' || !statement || !collected.take(item, statement))
      return undefined
  }
  const { statement, bind, execute } = collected
  if (!statement || !bind || !execute) return undefined
  return collected as Collected & PipelinedBatch
}

/** 0: no part of a unit. */
function placeOf(item: ReadItem): number {
  switch (item.kind) {
    case 'parse':
      return ORDER.parse
    case 'bind':
      return item.portal === '' ? ORDER.bind : 0
    case 'describe':
      if (item.what === 'S') return ORDER.describeStatement
      return item.name === '' ? ORDER.describePortal : 0
    case 'execute':
      return item.portal === '' && item.maxRows === 0 ? ORDER.execute : 0
    case 'close':
      return 0
  }
}

export function batchUnit(batch: PipelinedBatch, server: ServerConnection): Unit {
  const { shared } = batch.statement
  const describes = batch.describesStatement || batch.describePortal ? shared : undefined
  server.unnamed = undefined
  if (server.hasPrepared(shared)) {
    server.traffic.preparedHits++
    const insertsParse = batch.parse !== undefined
    return { ...unitOf(batch, undefined, shared.serverName), insertsParse, describes }
  }
  if (isSeenOnce(batch)) return { ...unitOf(batch, batch.parse, ''), describes }
  const parse = parseFrame(shared.serverName, shared.text, server.typesHere(shared.parameterTypes))
  return {
    ...unitOf(batch, parse, shared.serverName),
    prepares: shared,
    hidesParse: batch.parse === undefined,
    describes,
  }
}

/** A text that is parsed without a name and may never come again fills no server's memory. */
export const isSeenOnce = ({ parse, bind, statement }: PipelinedBatch): boolean =>
  parse !== undefined && bind.statement === '' && statement.shared.uses < SEEN_TO_SHARE

function unitOf(batch: PipelinedBatch, parse: Buffer | undefined, name: string): Unit {
  const { bind, describePortal, execute } = batch
  const describe = batch.describesStatement ? namedFrame('describe', 'S', name) : undefined
  const rest = bind.frame.length - bind.restStart
  const bindBytes = 7 + name.length + rest
  const size =
    (parse?.length ?? 0) +
    (describe?.length ?? 0) +
    bindBytes +
    (describePortal?.length ?? 0) +
    execute.frame.length +
    syncFrame.length
  const bytes = Buffer.allocUnsafe(size)
  let at = put(bytes, parse, 0)
  at = put(bytes, describe, at)
  bytes[at] = 0x42
  bytes.writeInt32BE(bindBytes - 1, at + 1)
  bytes[at + 5] = 0
  at += 6 + bytes.write(name, at + 6, 'latin1')
  bytes[at++] = 0
  at += bind.frame.copy(bytes, at, bind.restStart)
  at = put(bytes, describePortal, at)
  at = put(bytes, execute.frame, at)
  put(bytes, syncFrame, at)
  return { bytes, length: size }
}

function put(target: Buffer, piece: Buffer | undefined, at: number): number {
  return piece ? at + piece.copy(target, at) : at
}
