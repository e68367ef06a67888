/** A log that writes equal lines only so often: those of one window beyond the first few are counted and told once, when it ends. */
import type { Clock } from './clock.js'
import type { Log, LogFields } from './log.js'

export interface DedupOptions {
  readonly clock: Clock
  /** 0: every line is written. */
  readonly windowMs: number
  /** Equal lines that are still written in a window. */
  readonly threshold: number
}

type Level = 'debug' | 'info' | 'warn' | 'error'

/** Lines that differ more than this are not watched: memory must not grow with them. */
const MOST_LINES = 1000

export function dedupLog(log: Log, options: DedupOptions): Log {
  if (options.windowMs <= 0) return log
  return wrap(log, new Windows(options), '')
}

function wrap(log: Log, windows: Windows, prefix: string): Log {
  const write =
    (level: Level) =>
    (message: string, fields: LogFields = {}) => {
      const line = { level, message, fields, key: `${prefix}${level} ${message} ${keyOf(fields)}` }
      windows.write(line, log)
    }
  return {
    debug: write('debug'),
    info: write('info'),
    warn: write('warn'),
    error: write('error'),
    child: (fields) => wrap(log.child(fields), windows, `${prefix}${keyOf(fields)} `),
  }
}

const keyOf = (fields: LogFields): string => JSON.stringify(fields)

interface Line {
  readonly level: Level
  readonly message: string
  readonly fields: LogFields
  readonly key: string
}

class Windows {
  readonly #options: DedupOptions
  readonly #seen = new Map<string, number>()

  constructor(options: DedupOptions) {
    this.#options = options
  }

  write(line: Line, log: Log): void {
    const { level, message, fields, key } = line
    const seen = this.#seen.get(key) ?? 0
    if (seen === 0 && this.#seen.size < MOST_LINES) this.#open(line, log)
    if (this.#seen.has(key)) this.#seen.set(key, seen + 1)
    if (seen <= this.#options.threshold) log[level](message, fields)
  }

  /** At its end the window says what it has held back. */
  #open({ level, message, fields, key }: Line, log: Log): void {
    const { clock, windowMs, threshold } = this.#options
    this.#seen.set(key, 0)
    clock.after(windowMs, () => {
      const held = (this.#seen.get(key) ?? 0) - threshold - 1
      this.#seen.delete(key)
      if (held > 0) log[level](message, { ...fields, repeated: held })
    })
  }
}
