/** Text for people: tables, bytes, durations, counts. Pure: returns strings, prints nothing. */

export type Cell = string | number | bigint | null | undefined

const numeric = /^[-+]?[\d,]+(\.\d+)?( ?(%|B|kB|MB|GB|TB|ms|s|min|h|\/s|B\/s|kB\/s|MB\/s|GB\/s))?$/

const show = (cell: Cell): string => {
  if (cell === null || cell === undefined) return ''
  return typeof cell === 'string' ? cell : formatCount(cell)
}

/** Columns of one terminal cell a code unit are enough here: names, hosts and numbers. */
const padded = (text: string, width: number, right: boolean): string =>
  right ? text.padStart(width) : text.padEnd(width)

/**
 * A table with a header and a rule under it; a column whose cells are all numbers stands to the right.
 * Numbers get thousands separators; give strings to keep them as they are. Ends with a newline.
 */
export function renderTable(header: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const texts = rows.map((row) => header.map((_, i) => show(row[i])))
  const right = header.map(
    (_, i) => texts.length > 0 && texts.every((row) => row[i] === '' || numeric.test(row[i] ?? '')),
  )
  const widths = header.map((name, i) =>
    Math.max(name.length, ...texts.map((row) => row[i]?.length ?? 0)),
  )
  const line = (cells: readonly string[]): string =>
    cells
      .map((cell, i) => padded(cell, widths[i] ?? 0, right[i] ?? false))
      .join('  ')
      .trimEnd()
  const rule = widths.map((width) => '-'.repeat(width)).join('  ')
  return `${[line(header), rule, ...texts.map(line)].join('\n')}\n`
}

/** 1234567 → "1,234,567"; fractions keep up to three digits. */
export function formatCount(value: number | bigint): string {
  return value.toLocaleString('en-US', { maximumFractionDigits: 3 })
}

const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB', 'PB']

/** Decimal units, three significant digits: "512 B", "1.23 MB". */
export function formatBytes(bytes: number): string {
  let value = bytes
  let unit = 0
  while (Math.abs(value) >= 999.5 && unit < byteUnits.length - 1) {
    value /= 1000
    unit++
  }
  const digits = unit === 0 || Math.abs(value) >= 99.95 ? 0 : Math.abs(value) >= 9.995 ? 1 : 2
  return `${value.toFixed(digits)} ${byteUnits[unit]}`
}

/** "0.4 ms", "12 ms", "3.2 s", "2 min 5 s", "1 h 3 min". */
export function formatDuration(ms: number): string {
  if (ms < 10) return `${ms.toFixed(1)} ms`
  if (ms < 1000) return `${Math.round(ms)} ms`
  if (ms < 59_950) return `${(ms / 1000).toFixed(1)} s`
  const seconds = Math.round(ms / 1000)
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${seconds % 60} s`
  const minutes = Math.round(seconds / 60)
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

/** A rate for progress lines: "12.3 MB/s" or "45,678 rows/s". */
export function formatRate(perSec: number, unit: 'bytes' | string): string {
  return unit === 'bytes'
    ? `${formatBytes(perSec)}/s`
    : `${formatCount(Math.round(perSec))} ${unit}/s`
}

export type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'cyan'

const escapes: Record<Style, [number, number]> = {
  bold: [1, 22],
  dim: [2, 22],
  red: [31, 39],
  green: [32, 39],
  yellow: [33, 39],
  cyan: [36, 39],
}

/** A painter that colours when `on`, else returns the text as it is. */
export function painter(on: boolean): (style: Style, text: string) => string {
  if (!on) return (_, text) => text
  return (style, text) => `\u001b[${escapes[style][0]}m${text}\u001b[${escapes[style][1]}m`
}
