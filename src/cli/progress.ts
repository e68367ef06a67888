/**
 * Progress of long jobs, always on stderr: cli-progress bars on a terminal, a plain line every few seconds elsewhere, nothing with `--quiet`.
 * Results never come through here.
 */
import { createRequire } from 'node:module'
import type { MultiBar } from 'cli-progress'
import { type Clock, systemClock, type Timer } from '../base/clock.js'
import { formatBytes, formatCount, formatDuration, formatRate } from './render.js'

export interface ProgressItem {
  readonly label: string
  /** Absent: unknown; no percentage then. */
  readonly total?: number
  /** `bytes`, or the plural noun that is counted: `rows`, `tables`. */
  readonly unit: string
}

export interface ProgressBar {
  /** How much is done since the start of the item, not since the last call. `extra` is shown behind, such as a row count. */
  update(done: number, extra?: string): void
  setTotal(total: number): void
  /** Ends the item; its last line stays on a terminal. May be called twice. */
  finish(extra?: string): void
}

export interface ProgressBoard {
  bar(item: ProgressItem): ProgressBar
  /** A line above the bars. */
  note(line: string): void
  close(): void
}

export interface ProgressOptions {
  readonly quiet: boolean
  readonly stream?: NodeJS.WritableStream & { isTTY?: boolean }
  readonly clock?: Clock
  /** Between plain lines. */
  readonly everyMs?: number
}

interface Item extends ProgressItem {
  total?: number
  done: number
  extra: string
  readonly startedMs: number
  ended: boolean
}

const amount = (value: number, unit: string): string =>
  unit === 'bytes' ? formatBytes(value) : formatCount(value)

/** "orders: 12 % (1.2 MB of 10.0 MB), 3.1 MB/s, 0 min 3 s left, 1,200 rows" */
function describeItem(item: Item, nowMs: number): string {
  const elapsedMs = Math.max(nowMs - item.startedMs, 1)
  const perSec = (item.done * 1000) / elapsedMs
  const unit = item.unit === 'bytes' ? '' : ` ${item.unit}`
  const parts: string[] = []
  if (item.total !== undefined && item.total > 0) {
    const percent = Math.min(100, Math.floor((item.done * 100) / item.total))
    parts.push(
      `${percent} % (${amount(item.done, item.unit)} of ${amount(item.total, item.unit)}${unit})`,
    )
  } else parts.push(`${amount(item.done, item.unit)}${unit}`)
  parts.push(formatRate(perSec, item.unit))
  if (item.ended) parts.push(`in ${formatDuration(elapsedMs)}`)
  else if (item.total !== undefined && item.done > 0 && item.total > item.done)
    parts.push(`${formatDuration(((item.total - item.done) / perSec) * 1000)} left`)
  if (item.extra) parts.push(item.extra)
  return `${item.label}: ${parts.join(', ')}`
}

const silentBar: ProgressBar = {
  update: () => undefined,
  setTotal: () => undefined,
  finish: () => undefined,
}
const silentBoard: ProgressBoard = {
  bar: () => silentBar,
  note: () => undefined,
  close: () => undefined,
}

const startItem = (item: ProgressItem, nowMs: number): Item => ({
  ...item,
  done: 0,
  extra: '',
  startedMs: nowMs,
  ended: false,
})

function plainBoard(write: (line: string) => void, clock: Clock, everyMs: number): ProgressBoard {
  const open = new Set<Item>()
  let timer: Timer | undefined
  const say = (item: Item) => write(describeItem(item, clock.monotonicMs()))
  const beat = (): void => {
    for (const item of open) say(item)
    timer = open.size > 0 ? clock.after(everyMs, beat) : undefined
  }
  return {
    bar: (given) => {
      const item = startItem(given, clock.monotonicMs())
      open.add(item)
      timer ??= clock.after(everyMs, beat)
      return {
        update: (done, extra) => {
          item.done = done
          item.extra = extra ?? item.extra
        },
        setTotal: (total) => {
          item.total = total
        },
        finish: (extra) => {
          if (item.ended) return
          item.ended = true
          item.extra = extra ?? item.extra
          open.delete(item)
          say(item)
        },
      }
    },
    note: write,
    close: () => {
      timer?.cancel()
      timer = undefined
      open.clear()
    },
  }
}

function openBars(stream: NodeJS.WritableStream): MultiBar {
  // Loaded only here: most runs have no terminal.
  const require = createRequire(import.meta.url)
  const { MultiBar, Presets } = require('cli-progress') as typeof import('cli-progress')
  return new MultiBar(
    {
      stream,
      clearOnComplete: false,
      hideCursor: true,
      noTTYOutput: false,
      fps: 8,
      format: '{bar} {text}',
      barsize: 24,
      // The job owns SIGINT (see interrupt.ts); the bar must not end the process.
      gracefulExit: false,
    },
    Presets.rect,
  )
}

function terminalBoard(stream: NodeJS.WritableStream, clock: Clock): ProgressBoard {
  let bars: MultiBar | undefined
  let running = 0
  // Nothing may be drawn over what the command prints once its last bar has ended.
  const close = () => {
    bars?.stop()
    bars = undefined
  }
  return {
    bar: (given) => {
      bars ??= openBars(stream)
      running += 1
      const item = startItem(given, clock.monotonicMs())
      const text = () => ({ text: describeItem(item, clock.monotonicMs()) })
      const bar = bars.create(item.total ?? 0, 0, text())
      return {
        update: (done, extra) => {
          item.done = done
          item.extra = extra ?? item.extra
          bar.update(done, text())
        },
        setTotal: (total) => {
          item.total = total
          bar.setTotal(total)
        },
        finish: (extra) => {
          if (item.ended) return
          item.ended = true
          item.extra = extra ?? item.extra
          bar.update(item.done, text())
          bar.stop()
          running -= 1
          if (running === 0) close()
        },
      }
    },
    note: (line) => {
      if (bars) bars.log(`${line}\n`)
      else stream.write(`${line}\n`)
    },
    close,
  }
}

/** Opens the progress of one command. */
export function openProgress(options: ProgressOptions): ProgressBoard {
  if (options.quiet) return silentBoard
  const stream = options.stream ?? process.stderr
  const clock = options.clock ?? systemClock
  if (stream.isTTY === true) return terminalBoard(stream, clock)
  return plainBoard((line) => void stream.write(`${line}\n`), clock, options.everyMs ?? 3000)
}
