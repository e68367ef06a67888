/** Which failures of a statement mean that its host should be left. Never decides whether the caller hears of them: it always does. */
import { engineError } from '../errors/engine-error.js'
import { defaultOf, reasonOf } from './strategy.js'

/** True: another host is to be used from now on. */
export type ExceptionChecker = (error: unknown) => boolean

export interface CheckerOptions {
  /** Beginnings of SQLSTATEs, beyond 08, such as `57P`. */
  readonly sqlStateFailover?: readonly string[]
  /** Classes of errors, or their names; classes derived from them count. */
  readonly exceptionClassFailover?: readonly (string | (abstract new (...args: never[]) => Error))[]
}

const LOST_CODES = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])

/** What node-postgres says, without a code, of a connection that went away. */
const LOST_MESSAGES =
  /^(?:Connection terminated|Client has encountered a connection error|Client was closed|server closed the connection)/

const codeOf = (error: unknown): string | undefined => {
  const { code, sqlstate } = error as { code?: unknown; sqlstate?: unknown }
  if (typeof sqlstate === 'string') return sqlstate
  return typeof code === 'string' ? code : undefined
}

const isSqlState = (code: string): boolean => /^[0-9A-Z]{5}$/.test(code)

/** The connection broke, or none could be made: nothing is known of the statement. */
export function isCommunicationError(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  const code = codeOf(error)
  if (code !== undefined && (LOST_CODES.has(code) || (isSqlState(code) && code.startsWith('08'))))
    return !isRejection(error)
  return LOST_MESSAGES.test(error.message)
}

/** A server that answered, and said no: another host would be asked in vain. */
const isRejection = (error: Error): boolean => codeOf(error) === '08004'

/** Told apart from mistakes of the program, which never change a connection. */
const isSqlError = (error: unknown): error is Error => {
  if (!(error instanceof Error)) return false
  const code = codeOf(error)
  return (code !== undefined && isSqlState(code)) || isCommunicationError(error)
}

function namesOf(error: Error): string[] {
  const names: string[] = [error.name]
  for (let at = Object.getPrototypeOf(error); at; at = Object.getPrototypeOf(at))
    names.push((at.constructor as { name: string }).name)
  return names
}

/** SQLSTATE 08, a broken connection, and what the options name. */
export function standardChecker(options: CheckerOptions = {}): ExceptionChecker {
  const prefixes = ['08', ...(options.sqlStateFailover ?? [])]
  const classes = options.exceptionClassFailover ?? []
  return (error) => {
    if (!(error instanceof Error)) return false
    const isNamed = classes.some((one) =>
      typeof one === 'string' ? namesOf(error).includes(one) : error instanceof one,
    )
    if (isNamed) return true
    if (!isSqlError(error)) return false
    const code = codeOf(error)
    if (
      code !== undefined &&
      isSqlState(code) &&
      prefixes.some((prefix) => code.startsWith(prefix))
    )
      return true
    return isCommunicationError(error)
  }
}

/**
 * A checker of the user's that can do no harm: one that throws has no opinion, and the standard one decides. Only `true`
 * is a yes; a promise is none.
 */
const guarded =
  (given: (error: unknown) => unknown, standard: ExceptionChecker): ExceptionChecker =>
  (error) => {
    try {
      return given(error) === true
    } catch {
      return standard(error)
    }
  }

/** A function, or the default export of a module; absent: the standard one. @throws CLIENT_EXCEPTION_CHECKER */
export async function loadChecker(
  given: ExceptionChecker | string | undefined,
  options: CheckerOptions,
): Promise<ExceptionChecker> {
  const standard = standardChecker(options)
  if (given === undefined) return standard
  if (typeof given === 'function') return guarded(given, standard)
  const made = await defaultOf(given).catch((cause: unknown) => {
    throw engineError(
      'CLIENT_EXCEPTION_CHECKER',
      { name: given, reason: reasonOf(cause) },
      { cause },
    )
  })
  if (typeof made === 'function') return guarded(made as (error: unknown) => unknown, standard)
  throw engineError('CLIENT_EXCEPTION_CHECKER', {
    name: given,
    reason: 'its default export is not a function',
  })
}
