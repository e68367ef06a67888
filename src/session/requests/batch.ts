/**
 * Messages of the extended protocol up to a Sync or Flush, decoded as far as the session must know them.
 * Frames are owned. @see PostgreSQL documentation, "Extended Query", "Message Formats"
 */
import { type EngineError, engineError, toEngineError } from '../../errors/engine-error.js'
import type { BoundParameters } from '../../plan/plan.js'
import { readCString } from '../../server/read-cstring.js'
import { FrameReader, tagName } from '../../wire/frame-reader.js'
import { FrameWriter } from '../../wire/frame-writer.js'
import { frontend } from '../../wire/tags.js'

export interface ParseItem {
  readonly kind: 'parse'
  readonly frame: Buffer
  readonly name: string
  readonly text: string
  readonly types: readonly number[]
}

export interface BindItem {
  readonly kind: 'bind'
  readonly frame: Buffer
  readonly portal: string
  readonly statement: string
  /** Where the parameter formats begin: all behind the two names. */
  readonly restStart: number
  readonly parameters: BoundParameters
}

export interface NameItem {
  readonly kind: 'describe' | 'close'
  readonly frame: Buffer
  readonly what: 'S' | 'P'
  readonly name: string
}

export interface ExecuteItem {
  readonly kind: 'execute'
  readonly frame: Buffer
  readonly portal: string
  /** 0: all rows. */
  readonly maxRows: number
}

/** A body that cannot be read: the server shall say what is wrong with it, in its own words. */
export interface MalformedItem {
  readonly kind: 'malformed'
  readonly frame: Buffer
  readonly error: EngineError
  /** Of a Bind whose names could be read: a server looks for the statement before it reads on. */
  readonly bind?: Pick<BindItem, 'frame' | 'portal' | 'statement' | 'restStart'>
}

export type BatchItem = ParseItem | BindItem | NameItem | ExecuteItem | MalformedItem

/** Decodes one of P B D E C; `frame` is owned. */
export function readBatchItem(frame: Buffer): BatchItem {
  try {
    return readItem(frame)
  } catch (error) {
    return { kind: 'malformed', frame, error: toEngineError(error), ...bindNames(frame) }
  }
}

/** All messages of a batch up to its Sync, which stands at the end. */
export function readBatch(bytes: Buffer): BatchItem[] {
  const items: BatchItem[] = []
  const reader = new FrameReader((tag, buffer, start, end) => {
    if (tag !== frontend.sync) items.push(readBatchItem(Buffer.from(buffer.subarray(start, end))))
  })
  reader.push(bytes)
  return items
}

function bindNames(frame: Buffer): Pick<MalformedItem, 'bind'> {
  if (frame[0] !== frontend.bind) return {}
  try {
    const portal = readCString(frame, 5, frame.length)
    const { text, next } = readCString(frame, portal.next, frame.length)
    return { bind: { frame, portal: portal.text, statement: text, restStart: next } }
  } catch {
    return {}
  }
}

function readItem(frame: Buffer): Exclude<BatchItem, MalformedItem> {
  switch (frame[0]) {
    case frontend.parse:
      return readParse(frame)
    case frontend.bind:
      return readBind(frame)
    case frontend.execute:
      return readExecute(frame)
    default:
      return readNamed(frame)
  }
}

function readParse(frame: Buffer): ParseItem {
  const name = readCString(frame, 5, frame.length)
  const text = readCString(frame, name.next, frame.length)
  const count = int16At(frame, text.next)
  endsAt(frame, text.next + 2 + count * 4, 'parameter types')
  const types: number[] = []
  for (let i = 0; i < count; i++) types.push(frame.readUInt32BE(text.next + 2 + i * 4))
  return { kind: 'parse', frame, name: name.text, text: text.text, types }
}

function readBind(frame: Buffer): BindItem {
  const portal = readCString(frame, 5, frame.length)
  const statement = readCString(frame, portal.next, frame.length)
  const parameters = readParameters(frame, statement.next)
  return {
    kind: 'bind',
    frame,
    portal: portal.text,
    statement: statement.text,
    restStart: statement.next,
    parameters,
  }
}

function readParameters(frame: Buffer, from: number): BoundParameters {
  const formatCount = int16At(frame, from)
  const formatsFrom = from + 2
  const count = int16At(frame, formatsFrom + formatCount * 2)
  const starts = new Int32Array(count)
  const ends = new Int32Array(count)
  let at = formatsFrom + formatCount * 2 + 2
  for (let i = 0; i < count; i++) {
    if (at + 4 > frame.length) throw truncated(frame, 'parameters')
    const length = frame.readInt32BE(at)
    at += 4
    starts[i] = length < 0 ? -1 : at
    at += Math.max(length, 0)
    ends[i] = at
    if (at > frame.length) throw truncated(frame, 'parameters')
  }
  const format = (index: number): 0 | 1 => {
    if (formatCount === 0) return 0
    const slot = formatCount === 1 ? 0 : index
    return frame[formatsFrom + slot * 2 + 1] === 1 ? 1 : 0
  }
  return {
    count,
    buffer: frame,
    isNull: (index) => (starts[index] ?? -1) < 0,
    format,
    start: (index) => starts[index] as number,
    end: (index) => ends[index] as number,
  }
}

function readExecute(frame: Buffer): ExecuteItem {
  const portal = readCString(frame, 5, frame.length)
  endsAt(frame, portal.next + 4, 'row limit')
  return { kind: 'execute', frame, portal: portal.text, maxRows: frame.readInt32BE(portal.next) }
}

function readNamed(frame: Buffer): NameItem {
  const kind = frame[0] === frontend.describe ? 'describe' : 'close'
  const letter = frame[5]
  if (letter !== 0x53 && letter !== 0x50) {
    throw engineError('WIRE_BAD_FIELD', {
      tag: tagName(frame[0] as number),
      field: 'kind',
      value: letter ?? -1,
    })
  }
  const name = readCString(frame, 6, frame.length)
  endsAt(frame, name.next, 'name')
  return { kind, frame, what: letter === 0x53 ? 'S' : 'P', name: name.text }
}

function endsAt(frame: Buffer, end: number, field: string): void {
  if (end !== frame.length) throw truncated(frame, field)
}

function int16At(frame: Buffer, at: number): number {
  if (at + 2 > frame.length) throw truncated(frame, 'count')
  return frame.readUInt16BE(at)
}

const truncated = (frame: Buffer, field: string) =>
  engineError('WIRE_TRUNCATED', { tag: tagName(frame[0] as number), field })

/** Parse under another name. */
export function parseFrame(name: string, text: string, types: readonly number[]): Buffer {
  const writer = new FrameWriter(text.length + 64).begin(frontend.parse).cstring(name).cstring(text)
  writer.int16(types.length)
  for (const type of types) writer.int32(type)
  return writer.end().take()
}

/** The same Bind for another statement name. */
export function bindFrame(
  item: Pick<BindItem, 'frame' | 'portal' | 'restStart'>,
  statement: string,
): Buffer {
  const writer = new FrameWriter(item.frame.length + 32).begin(frontend.bind)
  writer.cstring(item.portal).cstring(statement)
  return writer.bytes(item.frame.subarray(item.restStart)).end().take()
}

export function namedFrame(kind: 'describe' | 'close', what: 'S' | 'P', name: string): Buffer {
  const writer = new FrameWriter(name.length + 16).begin(
    kind === 'describe' ? frontend.describe : frontend.close,
  )
  return writer.byte(what.charCodeAt(0)).cstring(name).end().take()
}

export const syncFrame = new FrameWriter(8).begin(frontend.sync).end().take()
export const flushFrame = new FrameWriter(8).begin(frontend.flush).end().take()

/** The bytes of the parameters that come as text. */
export function textParameters(parameters: BoundParameters): Buffer {
  const texts: Buffer[] = []
  for (let i = 0; i < parameters.count; i++) {
    if (parameters.isNull(i) || parameters.format(i) === 1) continue
    texts.push(parameters.buffer.subarray(parameters.start(i), parameters.end(i)))
  }
  return Buffer.concat(texts)
}

/** The text of a Query or Parse at [start, end). */
export function statementText(buffer: Buffer, start: number, end: number): string {
  const isParse = buffer[start] === frontend.parse
  const from = isParse ? buffer.indexOf(0, start + 5) + 1 : start + 5
  const zero = buffer.indexOf(0, from)
  return buffer.toString('utf8', from, zero < 0 || zero > end ? end : zero)
}
