/** An ErrorResponse of a server as an EngineError that keeps the server's own fields. */
import { EngineError } from '../errors/engine-error.js'
import { decodeErrorFields, type ErrorFields } from '../wire/error-response.js'

/** What PostgreSQL said; `fields` is its answer whole. */
export class ServerError extends EngineError {
  readonly fields: ErrorFields

  constructor(fields: ErrorFields) {
    super(
      'SERVER_SAID_NO',
      fields['M'] ?? '',
      { sqlstate: fields['C'] ?? 'XX000', message: '', exit: 1 },
      {
        ...(fields['D'] === undefined ? {} : { detail: fields['D'] }),
        ...(fields['H'] === undefined ? {} : { hint: fields['H'] }),
      },
    )
    this.fields = fields
  }
}

/** Reads the ErrorResponse frame [start, end). @throws WIRE_* when it is not one */
export function serverErrorOf(buffer: Buffer, start: number, end: number): ServerError {
  return new ServerError(decodeErrorFields(buffer.subarray(start + 5, end)))
}

/** Adds to what a server said which of the shards it was. */
export function noteShard(error: EngineError, shard: number, of: number): void {
  if (!(error instanceof ServerError)) return
  const fields = error.fields as Record<string, string>
  const where = `shard ${shard} of ${of}`
  fields['D'] = fields['D'] === undefined ? where : `${fields['D']} (${where})`
}

/** Only the SQLSTATE of an ErrorResponse frame, without decoding the rest. */
export function sqlstateOf(buffer: Buffer, start: number, end: number): string {
  let at = start + 5
  while (at < end && buffer[at] !== 0) {
    const zero = buffer.indexOf(0, at + 1)
    if (zero < 0 || zero >= end) break
    if (buffer[at] === 0x43) return buffer.toString('latin1', at + 1, zero)
    at = zero + 1
  }
  return 'XX000'
}

/** V (or S, before 9.6) of an ErrorResponse frame is FATAL or PANIC. */
export function isFatal(buffer: Buffer, start: number, end: number): boolean {
  const text = buffer.toString('latin1', start + 5, Math.min(end, start + 48))
  return /(?:^|\0)V(?:FATAL|PANIC)\0/.test(text)
}
