/** Errors of servers name a prepared statement as they know it; clients hear their own name for it. */

import type { EngineError } from '../errors/engine-error.js'
import { decodeErrorFields, errorResponseFrame } from '../wire/error-response.js'
import { errorFrame } from './answers.js'
import type { ServerNames } from './state/client-statements.js'

const shared = /"(pgshard_\d+)"/g
const prefix = Buffer.from('"pgshard_')

/** A limit of ours has asked for the cancel: the client hears which, not that it wished so itself. */
export const limitError = (sqlstate: string, limit: EngineError | undefined): Buffer | undefined =>
  sqlstate === '57014' && limit ? errorFrame(limit, 'ERROR') : undefined

const NO_SERVER = new Set([
  'POOL_CHECKOUT_TIMEOUT',
  'POOL_CONNECT_FAILED',
  'POOL_CONNECT_TIMEOUT',
  'POOL_OFFLINE',
  'POOL_ALL_REPLICAS_DOWN',
  'POOL_NO_PRIMARY',
  'POOL_BANNED',
])

/** There was no server for a client, for a reason that is not its own. */
export const saysNoServer = ({ code }: EngineError): boolean => NO_SERVER.has(code)

/** The ErrorResponse [start, end) with the client's own names; undefined when it has none of ours. */
export function inOwnWords(
  buffer: Buffer,
  start: number,
  end: number,
  names: ServerNames,
): Buffer | undefined {
  const at = buffer.indexOf(prefix, start)
  if (at < 0 || at >= end) return undefined
  const fields = { ...decodeErrorFields(buffer.subarray(start + 5, end)) }
  for (const [letter, text] of Object.entries(fields)) {
    fields[letter] = text.replace(shared, (whole, name) => {
      const own = names.nameOf(name)
      return own === undefined ? whole : `"${own}"`
    })
  }
  return errorResponseFrame(fields)
}
