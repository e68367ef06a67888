/**
 * The one class of every failure that pgshard reports, made from the catalogue.
 * Match by `code`, never by class or by text.
 */
import {
  type CatalogueEntry,
  catalogue,
  type ErrorCode,
  type ErrorParameters,
} from './catalogue.js'

export type Retry = 'safe' | 'unsafe' | 'unknown'

/** What a call site may add to a catalogue entry. */
export interface ErrorExtras {
  cause?: unknown
  detail?: string
  hint?: string
  /** 1-based character position in the statement, as in PostgreSQL's P field. */
  position?: number
  /** PostgreSQL's W field (CONTEXT): `COPY t, line 2`. */
  where?: string
  retry?: Retry
}

export class EngineError extends Error {
  readonly code: ErrorCode
  readonly sqlstate: string
  readonly severity: 'ERROR' | 'FATAL'
  readonly detail: string | undefined
  readonly hint: string | undefined
  readonly position: number | undefined
  readonly where: string | undefined
  readonly retry: Retry
  /** Exit code of a command that ends with this error (architecture: 1 bug, 2 usage, 3 configuration, 4 connect, 5 refused, 6 part, 7 differences). */
  readonly exitCode: number

  constructor(code: ErrorCode, message: string, entry: CatalogueEntry, extras: ErrorExtras) {
    super(message, extras.cause === undefined ? undefined : { cause: extras.cause })
    this.name = 'EngineError'
    this.code = code
    this.sqlstate = entry.sqlstate
    this.severity = entry.severity ?? 'ERROR'
    this.detail = extras.detail
    this.hint = extras.hint
    this.position = extras.position
    this.where = extras.where
    this.retry = extras.retry ?? entry.retry ?? 'unknown'
    this.exitCode = entry.exit ?? 1
  }
}

const fill = (template: string, parameters: Record<string, string | number>): string =>
  template.replace(/\{(\w+)\}/g, (whole, name: string) => String(parameters[name] ?? whole))

/** Makes the error of `code`; parameters fill the braces of its message and hint. */
export function engineError<C extends ErrorCode>(
  code: C,
  ...[parameters, extras]: keyof ErrorParameters<C> extends never
    ? [parameters?: Record<string, never>, extras?: ErrorExtras]
    : [parameters: ErrorParameters<C>, extras?: ErrorExtras]
): EngineError {
  const entry: CatalogueEntry = catalogue[code]
  const values = (parameters ?? {}) as Record<string, string | number>
  const hint = extras?.hint ?? (entry.hint === undefined ? undefined : fill(entry.hint, values))
  return new EngineError(code, fill(entry.message, values), entry, {
    ...extras,
    ...(hint === undefined ? {} : { hint }),
  })
}

/** The same error with a CONTEXT line, where it had none. */
export function withWhere(error: EngineError, where: string): EngineError {
  if (error.where !== undefined) return error
  const { code, message, cause, detail, hint, position, retry } = error
  return new EngineError(code, message, catalogue[code], {
    where,
    retry,
    ...(cause === undefined ? {} : { cause }),
    ...(detail === undefined ? {} : { detail }),
    ...(hint === undefined ? {} : { hint }),
    ...(position === undefined ? {} : { position }),
  })
}

/** True for our own errors, also across two copies of the package. */
export function isEngineError(error: unknown): error is EngineError {
  return error instanceof Error && error.name === 'EngineError' && 'sqlstate' in error
}

/** Any thrown value as an EngineError; what is not ours becomes INTERNAL with the original as cause. */
export function toEngineError(error: unknown): EngineError {
  if (isEngineError(error)) return error
  const message = error instanceof Error ? error.message : String(error)
  return engineError('INTERNAL', { message }, { cause: error })
}
