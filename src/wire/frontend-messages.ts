/**
 * The messages that a client sends after startup, but passwords and COPY, which have files of their own.
 * `decodeX` takes the body without tag and length; Buffers in what it returns are views of that body.
 * Texts are read as UTF-8: with another client_encoding, work on the bytes.
 * @see PostgreSQL documentation, "Message Formats"
 */
import { BodyReader } from './body-reader.js'
import type { FrameWriter } from './frame-writer.js'
import { frontend } from './tags.js'

export function encodeEmptyFrontend(
  writer: FrameWriter,
  message: 'copyDone' | 'flush' | 'sync' | 'terminate',
): void {
  writer.begin(frontend[message]).end()
}

/** Cstring portal · cstring statement · formats · values · result formats, each list with an Int16 count */
export interface Bind {
  readonly portal: string
  readonly statement: string
  /** None: all text; one: for all; else one a parameter. */
  readonly formats: readonly number[]
  readonly values: readonly (Buffer | null)[]
  readonly resultFormats: readonly number[]
}

export function encodeBind(writer: FrameWriter, message: Bind): void {
  writer.begin(frontend.bind).cstring(message.portal).cstring(message.statement)
  writer.count(message.formats.length)
  for (const format of message.formats) writer.int16(format)
  writer.count(message.values.length)
  for (const value of message.values) writer.value(value)
  writer.count(message.resultFormats.length)
  for (const format of message.resultFormats) writer.int16(format)
  writer.end()
}

export function decodeBind(body: Buffer): Bind {
  const reader = new BodyReader('B', body)
  const portal = reader.cstring('portal')
  const statement = reader.cstring('statement')
  const formats = reader.list('format count', 2, () => reader.int16('format'))
  const values = reader.list('parameter count', 4, () => reader.value('parameter'))
  const resultFormats = reader.list('result format count', 2, () => reader.int16('format'))
  reader.end()
  if (formats.length > 1 && formats.length !== values.length) {
    reader.bad('format count', `${formats.length} for ${values.length} parameters`)
  }
  return { portal, statement, formats, values, resultFormats }
}

/** Of Close and Describe: Byte1 'S' or 'P' · cstring name */
export interface StatementOrPortal {
  readonly kind: 'statement' | 'portal'
  readonly name: string
}

function encodeNamed(writer: FrameWriter, tag: number, message: StatementOrPortal): void {
  writer.begin(tag).byte(message.kind === 'statement' ? 0x53 : 0x50)
  writer.cstring(message.name).end()
}

function decodeNamed(name: string, body: Buffer): StatementOrPortal {
  const reader = new BodyReader(name, body)
  const kind = reader.byte('kind')
  if (kind !== 0x53 && kind !== 0x50) reader.bad('kind', kind)
  const of = reader.cstring('name')
  reader.end()
  return { kind: kind === 0x53 ? 'statement' : 'portal', name: of }
}

export function encodeClose(writer: FrameWriter, message: StatementOrPortal): void {
  encodeNamed(writer, frontend.close, message)
}

export function decodeClose(body: Buffer): StatementOrPortal {
  return decodeNamed('C', body)
}

export function encodeDescribe(writer: FrameWriter, message: StatementOrPortal): void {
  encodeNamed(writer, frontend.describe, message)
}

export function decodeDescribe(body: Buffer): StatementOrPortal {
  return decodeNamed('D', body)
}

/** Cstring portal · Int32 row limit */
export interface Execute {
  readonly portal: string
  /** 0: all; negative means all too, as PostgreSQL reads it. */
  readonly maxRows: number
}

export function encodeExecute(writer: FrameWriter, message: Execute): void {
  writer.begin(frontend.execute).cstring(message.portal).int32(message.maxRows).end()
}

export function decodeExecute(body: Buffer): Execute {
  const reader = new BodyReader('E', body)
  const portal = reader.cstring('portal')
  const maxRows = reader.int32('row limit')
  reader.end()
  return { portal, maxRows }
}

/** Int32 function · formats · arguments · Int16 result format */
export interface FunctionCall {
  readonly functionOid: number
  readonly formats: readonly number[]
  readonly values: readonly (Buffer | null)[]
  readonly resultFormat: number
}

export function encodeFunctionCall(writer: FrameWriter, message: FunctionCall): void {
  writer.begin(frontend.functionCall).int32(message.functionOid).count(message.formats.length)
  for (const format of message.formats) writer.int16(format)
  writer.count(message.values.length)
  for (const value of message.values) writer.value(value)
  writer.int16(message.resultFormat).end()
}

export function decodeFunctionCall(body: Buffer): FunctionCall {
  const reader = new BodyReader('F', body)
  const functionOid = reader.uint32('function')
  const formats = reader.list('format count', 2, () => reader.int16('format'))
  const values = reader.list('argument count', 4, () => reader.value('argument'))
  const resultFormat = reader.int16('result format')
  reader.end()
  return { functionOid, formats, values, resultFormat }
}

/** Cstring name · cstring query · Int16 count · Int32 type* */
export interface Parse {
  readonly name: string
  readonly sql: string
  /** 0: left to the server. May be shorter than the parameters. */
  readonly parameterTypes: readonly number[]
}

export function encodeParse(writer: FrameWriter, message: Parse): void {
  writer.begin(frontend.parse).cstring(message.name).cstring(message.sql)
  writer.count(message.parameterTypes.length)
  for (const type of message.parameterTypes) writer.int32(type)
  writer.end()
}

export function decodeParse(body: Buffer): Parse {
  const reader = new BodyReader('P', body)
  const name = reader.cstring('name')
  const sql = reader.cstring('query')
  const parameterTypes = reader.list('parameter count', 4, () => reader.uint32('type'))
  reader.end()
  return { name, sql, parameterTypes }
}

/** Cstring */
export function encodeQuery(writer: FrameWriter, sql: string): void {
  writer.begin(frontend.query).cstring(sql).end()
}

export function decodeQuery(body: Buffer): string {
  const reader = new BodyReader('Q', body)
  const sql = reader.cstring('query')
  reader.end()
  return sql
}
