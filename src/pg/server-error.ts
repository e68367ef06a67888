/** An error that a PostgreSQL sent through pg, as ours: SQLSTATE, detail, hint and position kept, host and port added. */

import { catalogue } from '../errors/catalogue.js'
import { EngineError, engineError, isEngineError } from '../errors/engine-error.js'

interface ServerFields {
  readonly code: string
  readonly severity: string
  readonly message: string
  readonly detail?: string
  readonly hint?: string
  readonly where?: string
  readonly position?: string
}

/** True for an ErrorResponse of a server (pg's DatabaseError), also from another copy of pg. */
export function isServerError(error: unknown): error is ServerFields & Error {
  const fields = error as Partial<ServerFields>
  return error instanceof Error && typeof fields.severity === 'string' && fields.code?.length === 5
}

const detailOf = (error: ServerFields): string | undefined => {
  const parts = [error.detail, error.where].filter((part) => part !== undefined && part !== '')
  return parts.length === 0 ? undefined : parts.join('\n')
}

/** Any failure of a conversation with `where` ("host:port/database") as an EngineError. */
export function serverFailure(error: unknown, where: string): EngineError {
  if (isEngineError(error)) return error
  if (!isServerError(error)) {
    const reason = error instanceof Error ? error.message : String(error)
    return engineError('CONNECTION_LOST', { where, reason }, { cause: error })
  }
  const detail = detailOf(error)
  const position = Number(error.position)
  return new EngineError(
    'SERVER_ERROR',
    `${where}: ${error.message}`,
    { ...catalogue.SERVER_ERROR, sqlstate: error.code },
    {
      cause: error,
      ...(detail === undefined ? {} : { detail }),
      ...(error.hint === undefined ? {} : { hint: error.hint }),
      ...(position > 0 ? { position } : {}),
    },
  )
}
