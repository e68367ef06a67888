/**
 * One failed attempt to connect: its text in libpq's form, and whether the walk goes on to the next address, to the
 * next host, or ends. Knows errors of Node sockets, of pg and our own; matches by code, never by text.
 * Source followed: emitHostIdentityInfo, connectFailureMessage, PQconnectPoll in fe-connect.c.
 */
import { isEngineError } from '../errors/engine-error.js'

type ConnectErrorCode =
  | 'CONNECT_FAILED'
  | 'CONNECT_TIMEOUT'
  | 'CONNECT_REJECTED'
  | 'CONNECT_NO_DATABASE'

export interface AttemptFailure {
  readonly block: string
  readonly next: 'address' | 'host' | 'stop'
  readonly code: ConnectErrorCode
  /** As the server said it; absent where none answered. */
  readonly sqlstate?: string
  readonly cause?: unknown
  readonly hint?: string
}

interface Place {
  readonly host: { readonly host: string; readonly hostaddr?: string }
  readonly address: string
  readonly port: number
}

const systemMessages: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'Connection refused',
  ENOENT: 'No such file or directory',
  EACCES: 'Permission denied',
  EHOSTUNREACH: 'No route to host',
  ENETUNREACH: 'Network is unreachable',
  EADDRNOTAVAIL: 'Cannot assign requested address',
  ETIMEDOUT: 'Connection timed out',
  ENOTSOCK: 'Socket operation on non-socket',
  EINVAL: 'Invalid argument',
}

/** "connection to server at "h" (a), port p failed: reason" */
export function attemptBlock(place: Place, reason: string): string {
  const { address, port } = place
  if (address.startsWith('/'))
    return `connection to server on socket "${address}/.s.PGSQL.${port}" failed: ${reason}`
  const ip = place.host.host === address ? '' : ` (${address})`
  return `connection to server at "${place.host.host}"${ip}, port ${port} failed: ${reason}`
}

export function resolveFailure(name: string, cause: unknown): AttemptFailure {
  const code = (cause as { code?: unknown } | undefined)?.code
  const reason =
    code === 'ENOTFOUND'
      ? 'Name or service not known'
      : code === 'EAI_AGAIN'
        ? 'Temporary failure in name resolution'
        : cause instanceof Error
          ? cause.message
          : String(cause)
  return {
    block: `could not translate host name "${name}" to address: ${reason}`,
    next: 'address',
    code: 'CONNECT_FAILED',
    cause,
    hint: 'check the spelling of the host name and that it resolves on this machine',
  }
}

interface Facts {
  /** Code of a failed system call, such as ECONNREFUSED. */
  readonly system?: string
  readonly sqlstate?: string
  readonly severity?: string
  readonly message: string
  readonly isTimeout: boolean
  /** The server said it, in an ErrorResponse. */
  readonly isServer?: boolean
}

/** An ErrorResponse kept by our own driver. */
function serverFields(error: Error): Facts | undefined {
  const { fields } = error as { fields?: Readonly<Record<string, string>> }
  if (fields?.['C'] === undefined) return undefined
  return {
    sqlstate: fields['C'],
    severity: fields['S'] ?? 'FATAL',
    message: fields['M'] ?? '',
    isTimeout: false,
    isServer: true,
  }
}

/** What one layer of an error says; undefined when it says nothing that decides. */
function layerFacts(error: Error): Facts | undefined {
  const { code, severity, attempt } = error as {
    code?: unknown
    severity?: unknown
    attempt?: unknown
  }
  const { message } = error
  if (attempt !== undefined) return { message: 'timeout expired', isTimeout: true }
  if (typeof code === 'string' && Object.hasOwn(systemMessages, code))
    return { system: code, message, isTimeout: false }
  const fields = serverFields(error)
  if (fields !== undefined) return fields
  if (typeof code !== 'string' || typeof severity !== 'string' || !/^[0-9A-Z]{5}$/.test(code))
    return undefined
  return { sqlstate: code, severity, message, isTimeout: false, isServer: true }
}

/** The first layer of an error and its causes that says what happened. */
function factsOf(error: unknown): Facts {
  let seen: unknown = error
  for (let depth = 0; depth < 5 && seen instanceof Error; depth++) {
    const facts = layerFacts(seen)
    if (facts !== undefined) return facts
    seen = seen.cause
  }
  if (!isEngineError(error))
    return { message: error instanceof Error ? error.message : String(error), isTimeout: false }
  return {
    sqlstate: error.sqlstate,
    severity: error.severity,
    message: error.message,
    isTimeout: error.code.endsWith('TIMEOUT'),
  }
}

function hintOf(facts: Facts): { code: ConnectErrorCode; hint?: string } {
  switch (facts.sqlstate) {
    case '3D000':
      return { code: 'CONNECT_NO_DATABASE' }
    case '28P01':
      return {
        code: 'CONNECT_REJECTED',
        hint: 'the password is wrong: give it in the connection string, in PGPASSWORD or in .pgpass',
      }
    case '28000':
      return { code: 'CONNECT_REJECTED' }
    case '53300':
      return {
        code: 'CONNECT_REJECTED',
        hint: 'use fewer connections, or raise max_connections of the server',
      }
    case '57P03':
      return {
        code: 'CONNECT_FAILED',
        hint: 'the server is starting, stopping or recovering: try again',
      }
    default:
      return { code: facts.sqlstate === undefined ? 'CONNECT_FAILED' : 'CONNECT_REJECTED' }
  }
}

/** What libpq would do after `error` at `place`. */
export function attemptFailure(place: Place, error: unknown): AttemptFailure {
  const facts = factsOf(error)
  if (facts.isTimeout) {
    const block = attemptBlock(place, 'timeout expired')
    return { block, next: 'address', code: 'CONNECT_TIMEOUT', cause: error }
  }
  if (facts.system !== undefined) {
    const question = place.address.startsWith('/')
      ? '\tIs the server running locally and accepting connections on that socket?'
      : '\tIs the server running on that host and accepting TCP/IP connections?'
    const block = attemptBlock(place, `${systemMessages[facts.system]}\n${question}`)
    return { block, next: 'address', code: 'CONNECT_FAILED', cause: error }
  }
  const reason = facts.isServer ? `${facts.severity}:  ${facts.message}` : facts.message
  const { code, hint } = hintOf(facts)
  return {
    block: attemptBlock(place, reason),
    next: facts.sqlstate === '57P03' ? 'host' : 'stop',
    code,
    cause: error,
    ...(facts.sqlstate === undefined ? {} : { sqlstate: facts.sqlstate }),
    ...(hint === undefined ? {} : { hint }),
  }
}
