/**
 * Log lines on stderr, as text or JSON. Fields carry facts; the message is a constant sentence.
 * Never pass a password, a parameter value or a whole statement here.
 */
import { pino } from 'pino'

export type LogLevel = 'trace' | 'debug' | 'info' | 'warn' | 'error' | 'silent'
export type LogFields = Record<string, unknown>

export interface Log {
  debug(message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
  child(fields: LogFields): Log
}

const labels: Record<number, string> = {
  10: 'TRACE',
  20: 'DEBUG',
  30: 'INFO',
  40: 'WARN',
  50: 'ERROR',
  60: 'FATAL',
}

const plain = (value: unknown): string =>
  typeof value === 'string' && /^[^\s"=]+$/.test(value) ? value : JSON.stringify(value)

function textLine(json: string): string {
  const { level, time, msg, ...fields } = JSON.parse(json) as {
    level: number
    time: number
    msg?: string
  } & LogFields
  const stamp = new Date(time).toISOString().replace('T', ' ').replace('Z', '')
  const tail = Object.entries(fields).map(([name, value]) => ` ${name}=${plain(value)}`)
  return `${stamp} ${(labels[level] ?? 'INFO').padEnd(5)} ${msg ?? ''}${tail.join('')}\n`
}

/** A log to stderr; `json` prints one object a line. */
export function openLog(
  options: { level?: LogLevel; json?: boolean; write?: (line: string) => void } = {},
): Log {
  const write = options.write ?? ((line: string) => void process.stderr.write(line))
  const inner = pino(
    { level: options.level ?? 'info', base: null },
    { write: (line: string) => write(options.json ? line : textLine(line)) },
  )
  const wrap = (logger: typeof inner): Log => ({
    debug: (message, fields) => logger.debug(fields ?? {}, message),
    info: (message, fields) => logger.info(fields ?? {}, message),
    warn: (message, fields) => logger.warn(fields ?? {}, message),
    error: (message, fields) => logger.error(fields ?? {}, message),
    child: (fields) => wrap(logger.child(fields)),
  })
  return wrap(inner)
}

export const silentLog: Log = {
  debug: () => undefined,
  info: () => undefined,
  warn: () => undefined,
  error: () => undefined,
  child: () => silentLog,
}
