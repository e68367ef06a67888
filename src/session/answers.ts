/** Frames that the proxy itself says to a client: small answers, errors, and statuses. */
import type { EngineError } from '../errors/engine-error.js'
import {
  type ErrorFields,
  encodeErrorResponse,
  errorResponseFrame,
  fieldsOf,
} from '../wire/error-response.js'
import { FrameWriter } from '../wire/frame-writer.js'
import { backend } from '../wire/tags.js'

const bare = (tag: number): Buffer => new FrameWriter(8).begin(tag).end().take()

export const parseCompleteFrame = bare(backend.parseComplete)
export const bindCompleteFrame = bare(backend.bindComplete)
export const closeCompleteFrame = bare(backend.closeComplete)
export const portalSuspendedFrame = bare(backend.portalSuspended)
export const noDataFrame = bare(backend.noData)
export const emptyQueryFrame = bare(backend.emptyQueryResponse)
export const noParametersFrame = new FrameWriter(8)
  .begin(backend.parameterDescription)
  .int16(0)
  .end()
  .take()

/** CommandComplete with its tag. */
export function completeFrame(tag: string): Buffer {
  return new FrameWriter(32).begin(backend.commandComplete).cstring(tag).end().take()
}

export function parameterStatusFrame(name: string, value: string): Buffer {
  return new FrameWriter(64)
    .begin(backend.parameterStatus)
    .cstring(name)
    .cstring(value)
    .end()
    .take()
}

/** One text column and its rows: answers of SHOW pgshard.*. */
export function textTableFrames(column: string, values: readonly (string | null)[]): Buffer {
  const writer = new FrameWriter()
  writer.begin(backend.rowDescription).int16(1).cstring(column)
  writer.int32(0).int16(0).int32(25).int16(-1).int32(-1).int16(0).end()
  for (const value of values) writer.begin(backend.dataRow).int16(1).value(value).end()
  return writer.take()
}

/** ErrorResponse of an error: a server's own fields as they were, else ours with the code in R. */
export function errorFrame(
  error: EngineError,
  severity: 'ERROR' | 'FATAL' = error.severity,
): Buffer {
  return errorResponseFrame(
    'fields' in error ? (error.fields as ErrorFields) : fieldsOf(error, severity),
  )
}

export function noticeFrame(
  sqlstate: string,
  severity: 'WARNING' | 'NOTICE',
  message: string,
  hint?: string,
): Buffer {
  const writer = new FrameWriter()
  const fields = { S: severity, V: severity, C: sqlstate, M: message, ...(hint ? { H: hint } : {}) }
  encodeErrorResponse(writer, fields, 'notice')
  return writer.take()
}
