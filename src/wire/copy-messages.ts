/** The messages of COPY, which both sides send. The bytes of CopyData are passed, never read, here. */
import { BodyReader } from './body-reader.js'
import type { FrameWriter } from './frame-writer.js'
import { backend, frontend } from './tags.js'

/** Int8 format · Int16 count · Int16 format* */
export interface CopyResponse {
  /** 0 text (and CSV), 1 binary. */
  readonly format: number
  readonly columnFormats: readonly number[]
}

export type CopyResponseKind = 'copyInResponse' | 'copyOutResponse' | 'copyBothResponse'

export function encodeCopyResponse(
  writer: FrameWriter,
  kind: CopyResponseKind,
  message: CopyResponse,
): void {
  writer.begin(backend[kind]).byte(message.format).count(message.columnFormats.length)
  for (const format of message.columnFormats) writer.int16(format)
  writer.end()
}

/** For CopyInResponse, CopyOutResponse and CopyBothResponse. */
export function decodeCopyResponse(body: Buffer): CopyResponse {
  const reader = new BodyReader('G', body)
  const format = reader.byte('format')
  if (format > 1) reader.bad('format', format)
  const columnFormats = reader.list('column count', 2, () => reader.int16('format'))
  reader.end()
  return { format, columnFormats }
}

/** Bytes: rows in any cut. */
export function encodeCopyData(writer: FrameWriter, bytes: Uint8Array): void {
  writer.begin(frontend.copyData).bytes(bytes).end()
}

/** The body itself. */
export function decodeCopyData(body: Buffer): Buffer {
  return body
}

/** Cstring */
export function encodeCopyFail(writer: FrameWriter, reason: string): void {
  writer.begin(frontend.copyFail).cstring(reason).end()
}

export function decodeCopyFail(body: Buffer): string {
  const reader = new BodyReader('f', body)
  const reason = reader.cstring('reason')
  reader.end()
  return reason
}
