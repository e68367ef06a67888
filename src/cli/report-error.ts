/**
 * What a failed command tells its user: one line, DETAIL and HINT, an exit code. Never a stack trace.
 * Understands our own errors, oclif's parse errors, a server's answers (node-postgres) and the system's (ENOENT, ECONNREFUSED).
 */
import { isEngineError, toEngineError } from '../errors/engine-error.js'

export interface Failure {
  readonly code: string
  readonly sqlstate: string
  readonly message: string
  readonly detail?: string
  readonly hint?: string
  /** PostgreSQL's CONTEXT: table, line, file. */
  readonly where?: string
  readonly exitCode: number
  /** Messages of the causes, outermost first; shown with `--verbose`. */
  readonly causes: readonly string[]
}

const exitCodes = { bug: 1, usage: 2, config: 3, connect: 4 } as const

const fileErrors = new Set(['ENOENT', 'EACCES', 'EISDIR', 'ENOTDIR', 'EPERM'])
const fileReasons: Record<string, string> = {
  ENOENT: 'no such file or directory',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EISDIR: 'is a directory',
  ENOTDIR: 'not a directory',
}
const connectErrors = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'EPIPE',
])

interface LooseError extends Error {
  code?: unknown
  path?: unknown
  severity?: unknown
  detail?: unknown
  hint?: unknown
  oclif?: { exit?: number }
}

function causesOf(error: unknown): string[] {
  const causes: string[] = []
  let cause = error instanceof Error ? error.cause : undefined
  while (cause !== undefined && causes.length < 8) {
    causes.push(cause instanceof Error ? cause.message || cause.name : String(cause))
    cause = cause instanceof Error ? cause.cause : undefined
  }
  return causes
}

/** The first place in our code, for a report of a bug; not a stack. */
function placeOf(error: unknown): string[] {
  const frame = (error instanceof Error ? error.stack : undefined)
    ?.split('\n')
    .find((line) => line.includes('/dist/') || line.includes('/src/'))
  const place = frame === undefined ? null : /((?:dist|src)\/[^\s)]+)/.exec(frame)
  return place?.[1] === undefined ? [] : [`at ${place[1]}`]
}

/** True for the exit that oclif throws when a command ends itself. */
export function exitOf(error: unknown): number | undefined {
  const loose = error as LooseError | undefined
  return loose?.code === 'EEXIT' ? (loose.oclif?.exit ?? 0) : undefined
}

const lowerFirst = (text: string): string =>
  /^[A-Z][a-z]/.test(text) ? text.charAt(0).toLowerCase() + text.slice(1) : text

/** oclif's several lines as one in our style. */
function usageMessage(text: string): string {
  const lines = text
    .split('\n')
    .map((line) => line.trim().replace(/\s{2,}/g, ': '))
    .map((line) => line.replace(/^(Missing required flag) (?=\w)/, '$1 --'))
    .filter((line) => line !== '' && !/^See more help with/.test(line))
  const [first = 'wrong usage', ...rest] = lines
  if (/^The following errors? occurred:/.test(first)) return rest.map(lowerFirst).join('; ')
  const whole = [first, ...rest].join(' ').replace(/\.$/, '')
  const value = /^Parsing (--\S+) (.*)$/s.exec(whole)
  return value ? `${value[1]}: ${lowerFirst(value[2] ?? '')}` : lowerFirst(whole)
}

const text = (value: unknown): string | undefined =>
  typeof value === 'string' && value !== '' ? value : undefined

const optional = (detail: string | undefined, hint: string | undefined) => ({
  ...(detail === undefined ? {} : { detail }),
  ...(hint === undefined ? {} : { hint }),
})

function serverFailure(error: LooseError, sqlstate: string): Failure {
  const connect = /^(08|28|3D|53|57P)/.test(sqlstate)
  return {
    code: 'SERVER_ERROR',
    sqlstate,
    message: error.message,
    ...optional(text(error.detail), text(error.hint)),
    exitCode: connect ? exitCodes.connect : exitCodes.bug,
    causes: causesOf(error),
  }
}

function systemFailure(error: LooseError, code: string): Failure | undefined {
  if (fileErrors.has(code) && text(error.path) !== undefined) {
    return {
      code: 'FILE_MISSING',
      sqlstate: '58P01',
      message: `could not open file "${String(error.path)}": ${fileReasons[code] ?? code}`,
      hint: 'check the path and that this user may read it',
      exitCode: exitCodes.config,
      causes: causesOf(error),
    }
  }
  if (!connectErrors.has(code)) return undefined
  return {
    code: 'CONNECT_FAILED',
    sqlstate: '08006',
    message: `could not reach the server: ${error.message || code}`,
    hint: 'check host and port, and that the server accepts connections',
    exitCode: exitCodes.connect,
    causes: causesOf(error),
  }
}

function usageFailure(error: LooseError, commandId: string | undefined): Failure {
  const help = ['pgshard', ...(commandId ?? '').split(':'), '--help'].filter(Boolean).join(' ')
  return {
    code: 'USAGE',
    sqlstate: '22023',
    message: usageMessage(error.message),
    hint: `see "${help}"`,
    exitCode: exitCodes.usage,
    causes: [],
  }
}

/** Any thrown value as what its user should read. `commandId` (with colons) names the help page of a usage error. */
export function describeFailure(error: unknown, commandId?: string): Failure {
  if (isEngineError(error)) {
    return {
      code: error.code,
      sqlstate: error.sqlstate,
      message: error.message,
      ...optional(error.detail, error.hint),
      ...(error.where === undefined ? {} : { where: error.where }),
      exitCode: error.exitCode,
      causes: causesOf(error),
    }
  }
  const loose = error as LooseError
  if (error instanceof Error) {
    if (loose.oclif !== undefined) return usageFailure(loose, commandId)
    const code = text(loose.code)
    if (code !== undefined && text(loose.severity) !== undefined) return serverFailure(loose, code)
    const system = code === undefined ? undefined : systemFailure(loose, code)
    if (system) return system
  }
  const bug = toEngineError(error)
  return {
    code: bug.code,
    sqlstate: bug.sqlstate,
    message: bug.message,
    ...optional(bug.detail, bug.hint),
    exitCode: exitCodes.bug,
    causes: [...placeOf(error), ...causesOf(error)],
  }
}

/** Several lines stand under their label, so that each begins with its own place. */
const indented = (label: string, body: string): string => {
  const lines = body.split('\n')
  return lines.length === 1 ? `${label}: ${body}\n` : `${label}:\n  ${lines.join('\n  ')}\n`
}

/** The lines for stderr. */
export function renderFailure(failure: Failure, verbose: boolean): string {
  let lines = `pgshard: ${failure.message}\n`
  if (failure.detail !== undefined) lines += indented('DETAIL', failure.detail)
  if (failure.where !== undefined) lines += indented('CONTEXT', failure.where)
  if (failure.hint !== undefined) lines += indented('HINT', failure.hint)
  if (!verbose) return lines
  lines += `CODE: ${failure.code} (SQLSTATE ${failure.sqlstate})\n`
  for (const cause of failure.causes) lines += indented('CAUSE', cause)
  return lines
}

/** The object of `--json`. */
export function failureJson(failure: Failure): object {
  return {
    error: {
      code: failure.code,
      sqlstate: failure.sqlstate,
      message: failure.message,
      ...optional(failure.detail, failure.hint),
      ...(failure.where === undefined ? {} : { where: failure.where }),
    },
  }
}
