/**
 * The messages that a server sends, but authentication, COPY and errors, which have files of their own.
 * `decodeX` takes the body without tag and length; Buffers in what it returns are views of that body.
 * @see PostgreSQL documentation, "Message Formats"
 */
import { BodyReader } from './body-reader.js'
import type { FrameWriter } from './frame-writer.js'
import { backend } from './tags.js'

/** 4 bytes in protocol 3.0, up to 256 in 3.2. @see `src/include/libpq/pqcomm.h`, MAX_CANCEL_KEY… */
export const CANCEL_KEY_MIN_BYTES = 4
export const CANCEL_KEY_MAX_BYTES = 256

/** A message of which the tag says all. */
type EmptyMessage =
  | 'bindComplete'
  | 'closeComplete'
  | 'copyDone'
  | 'emptyQueryResponse'
  | 'noData'
  | 'parseComplete'
  | 'portalSuspended'

export function encodeEmptyBackend(writer: FrameWriter, message: EmptyMessage): void {
  writer.begin(backend[message]).end()
}

/** @throws WIRE_BAD_FIELD when the body is not empty */
export function decodeEmpty(name: string, body: Buffer): void {
  new BodyReader(name, body).end()
}

/** Int32 process · key */
export interface BackendKeyData {
  readonly processId: number
  readonly secret: Buffer
}

export function encodeBackendKeyData(writer: FrameWriter, message: BackendKeyData): void {
  writer.begin(backend.backendKeyData).int32(message.processId).bytes(message.secret).end()
}

export function decodeBackendKeyData(body: Buffer): BackendKeyData {
  const reader = new BodyReader('K', body)
  const processId = reader.int32('process id')
  return { processId, secret: readCancelKey(reader) }
}

/** The rest of a body as a cancel key. */
export function readCancelKey(reader: BodyReader): Buffer {
  const secret = reader.rest()
  if (secret.length < CANCEL_KEY_MIN_BYTES || secret.length > CANCEL_KEY_MAX_BYTES) {
    reader.bad('cancel key length', secret.length)
  }
  return secret
}

/** Cstring */
export function encodeCommandComplete(writer: FrameWriter, tag: string): void {
  writer.begin(backend.commandComplete).cstring(tag).end()
}

export function decodeCommandComplete(body: Buffer): string {
  const reader = new BodyReader('C', body)
  const tag = reader.cstring('command tag')
  reader.end()
  return tag
}

/** Int16 count · (Int32 length or −1 · bytes)* */
export function encodeDataRow(
  writer: FrameWriter,
  values: readonly (Uint8Array | string | null)[],
): void {
  writer.begin(backend.dataRow).count(values.length)
  for (const value of values) writer.value(value)
  writer.end()
}

export function decodeDataRow(body: Buffer): (Buffer | null)[] {
  const reader = new BodyReader('D', body)
  const values = reader.list('column count', 4, () => reader.value('column'))
  reader.end()
  return values
}

/** Int32 length or −1 · bytes */
export function encodeFunctionCallResponse(writer: FrameWriter, value: Buffer | null): void {
  writer.begin(backend.functionCallResponse).value(value).end()
}

export function decodeFunctionCallResponse(body: Buffer): Buffer | null {
  const reader = new BodyReader('V', body)
  const value = reader.value('result')
  reader.end()
  return value
}

/** Int32 newest minor version (as a full version from PostgreSQL 18's libpq on) · Int32 count · cstring* */
export interface NegotiateProtocolVersion {
  /** As sent: a whole protocol version such as 196608. */
  readonly version: number
  /** Options that the server does not know. */
  readonly unknownOptions: readonly string[]
}

export function encodeNegotiateProtocolVersion(
  writer: FrameWriter,
  message: NegotiateProtocolVersion,
): void {
  writer.begin(backend.negotiateProtocolVersion).int32(message.version)
  writer.int32(message.unknownOptions.length)
  for (const option of message.unknownOptions) writer.cstring(option)
  writer.end()
}

export function decodeNegotiateProtocolVersion(body: Buffer): NegotiateProtocolVersion {
  const reader = new BodyReader('v', body)
  const version = reader.int32('version')
  const count = reader.int32('option count')
  // Each name has at least its zero byte.
  if (count < 0 || count > reader.remaining) reader.bad('option count', count)
  const unknownOptions: string[] = []
  for (let i = 0; i < count; i++) unknownOptions.push(reader.cstring('option'))
  reader.end()
  return { version, unknownOptions }
}

/** Int32 process · cstring channel · cstring payload */
export interface NotificationResponse {
  readonly processId: number
  readonly channel: string
  readonly payload: string
}

export function encodeNotificationResponse(
  writer: FrameWriter,
  message: NotificationResponse,
): void {
  writer.begin(backend.notificationResponse).int32(message.processId)
  writer.cstring(message.channel).cstring(message.payload).end()
}

export function decodeNotificationResponse(body: Buffer): NotificationResponse {
  const reader = new BodyReader('A', body)
  const processId = reader.int32('process id')
  const channel = reader.cstring('channel')
  const payload = reader.cstring('payload')
  reader.end()
  return { processId, channel, payload }
}

/** Int16 count · Int32 type* */
export function encodeParameterDescription(writer: FrameWriter, types: readonly number[]): void {
  writer.begin(backend.parameterDescription).count(types.length)
  for (const type of types) writer.int32(type)
  writer.end()
}

export function decodeParameterDescription(body: Buffer): number[] {
  const reader = new BodyReader('t', body)
  const types = reader.list('parameter count', 4, () => reader.uint32('type'))
  reader.end()
  return types
}

/** Cstring name · cstring value */
export interface ParameterStatus {
  readonly name: string
  readonly value: string
}

export function encodeParameterStatus(writer: FrameWriter, name: string, value: string): void {
  writer.begin(backend.parameterStatus).cstring(name).cstring(value).end()
}

export function decodeParameterStatus(body: Buffer): ParameterStatus {
  const reader = new BodyReader('S', body)
  const name = reader.cstring('name')
  const value = reader.cstring('value')
  reader.end()
  return { name, value }
}

/** Byte1 */
export function encodeReadyForQuery(writer: FrameWriter, status: number): void {
  writer.begin(backend.readyForQuery).byte(status).end()
}

/** 'I', 'T' or 'E' as its byte. @throws WIRE_BAD_FIELD for any other */
export function decodeReadyForQuery(body: Buffer): number {
  const reader = new BodyReader('Z', body)
  const status = reader.byte('status')
  if (status !== 0x49 && status !== 0x54 && status !== 0x45) reader.bad('status', status)
  reader.end()
  return status
}

/** Cstring name · Int32 table · Int16 column · Int32 type · Int16 size · Int32 modifier · Int16 format */
export interface FieldDescription {
  readonly name: string
  /** 0 when the field is no column of a table. */
  readonly tableOid: number
  readonly columnNumber: number
  readonly typeOid: number
  /** Negative for types of variable width. */
  readonly typeSize: number
  readonly typeModifier: number
  /** 0 text, 1 binary. */
  readonly format: number
}

export function encodeRowDescription(
  writer: FrameWriter,
  fields: readonly FieldDescription[],
): void {
  writer.begin(backend.rowDescription).count(fields.length)
  for (const field of fields) {
    writer.cstring(field.name).int32(field.tableOid).int16(field.columnNumber)
    writer.int32(field.typeOid).int16(field.typeSize).int32(field.typeModifier)
    writer.int16(field.format)
  }
  writer.end()
}

export function decodeRowDescription(body: Buffer): FieldDescription[] {
  const reader = new BodyReader('T', body)
  const fields = reader.list('field count', 19, () => ({
    name: reader.cstring('name'),
    tableOid: reader.uint32('table'),
    columnNumber: reader.int16('column'),
    typeOid: reader.uint32('type'),
    typeSize: reader.int16('size'),
    typeModifier: reader.int32('modifier'),
    format: reader.int16('format'),
  }))
  reader.end()
  return fields
}
