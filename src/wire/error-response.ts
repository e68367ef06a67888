/**
 * ErrorResponse and NoticeResponse: fields by letter. Our own errors carry their code in R (routine), so that
 * `\errverbose` shows it. A server's error is never rebuilt from here: its bytes are forwarded.
 *
 *   (Byte1 letter · cstring)* · zero byte
 *
 * @see PostgreSQL documentation, "Error and Notice Message Fields"
 */
import { type EngineError, isEngineError } from '../errors/engine-error.js'
import { BodyReader } from './body-reader.js'
import { FrameWriter } from './frame-writer.js'
import { backend } from './tags.js'

/** Letter → text: S V C M D H P p q W s t c d n F L R, and what may come. */
export type ErrorFields = Readonly<Record<string, string>>

export function encodeErrorResponse(
  writer: FrameWriter,
  error: EngineError | ErrorFields,
  kind: 'error' | 'notice' = 'error',
): void {
  writer.begin(kind === 'error' ? backend.errorResponse : backend.noticeResponse)
  const fields = isEngineError(error)
    ? fieldsOf(error, kind === 'notice' ? 'NOTICE' : error.severity)
    : error
  for (const [letter, text] of Object.entries(fields)) {
    writer.byte(letter.charCodeAt(0)).cstring(text)
  }
  writer.byte(0).end()
}

/** An ErrorResponse of these fields. */
export function errorResponseFrame(error: EngineError | ErrorFields): Buffer {
  const writer = new FrameWriter(256)
  encodeErrorResponse(writer, error)
  return writer.take()
}

/** The fields of one of our errors. */
export function fieldsOf(error: EngineError, severity: string = error.severity): ErrorFields {
  const fields: Record<string, string> = {
    S: severity,
    V: severity,
    C: error.sqlstate,
    M: clean(error.message),
  }
  if (error.detail !== undefined) fields['D'] = clean(error.detail)
  if (error.hint !== undefined) fields['H'] = clean(error.hint)
  if (error.position !== undefined) fields['P'] = String(error.position)
  if (error.where !== undefined) fields['W'] = clean(error.where)
  fields['R'] = error.code
  return fields
}

/** An error text may quote input; a zero byte would end the field. */
const clean = (text: string): string => text.replaceAll('\0', '\ufffd')

/** @throws WIRE_TRUNCATED when the closing zero byte is missing */
export function decodeErrorFields(body: Buffer): ErrorFields {
  const reader = new BodyReader('E', body)
  const fields: Record<string, string> = Object.create(null)
  for (let letter = reader.byte('field'); letter !== 0; letter = reader.byte('field')) {
    fields[String.fromCharCode(letter)] = reader.cstring('field')
  }
  reader.end()
  return fields
}
