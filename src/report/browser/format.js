/** Numbers, times and sizes as people read them. Runs in browsers. */

const counts = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })
const byteUnits = ['B', 'kB', 'MB', 'GB', 'TB']

export const formatCount = (value) => counts.format(value)

/** Three digits that count, more only before the point. */
export function formatNumber(value) {
  const size = Math.abs(value)
  if (size === 0) return '0'
  if (size >= 100) return counts.format(value)
  return String(Number(value.toPrecision(size >= 10 ? 3 : 2)))
}

export function formatBytes(value) {
  let amount = value
  let unit = 0
  while (Math.abs(amount) >= 1000 && unit < byteUnits.length - 1) {
    amount /= 1000
    unit++
  }
  return `${formatNumber(amount)} ${byteUnits[unit]}`
}

export function formatMs(value) {
  if (value >= 120_000) return `${formatNumber(value / 60_000)} min`
  if (value >= 1000) return `${formatNumber(value / 1000)} s`
  return `${formatNumber(value)} ms`
}

/** A span for tables: `3 s`, `4 min 10 s`, `2 h 5 min`, `3 d 4 h`. */
export function formatSpan(ms) {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  const [days, hours, minutes] = [86_400, 3600, 60].map((unit) => Math.floor(seconds / unit))
  if (days > 0) return `${days} d ${hours % 24} h`
  if (hours > 0) return `${hours} h ${minutes % 60} min`
  if (minutes > 0) return `${minutes} min ${seconds % 60} s`
  return `${seconds} s`
}

const two = (value) => String(value).padStart(2, '0')

/** Clock time of an instant in seconds, where the reader is. */
export function formatClock(seconds) {
  const at = new Date(seconds * 1000)
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`
}

const byUnit = {
  count: formatNumber,
  rate: (value) => `${formatNumber(value)}/s`,
  ms: formatMs,
  bytes: formatBytes,
  byteRate: (value) => `${formatBytes(value)}/s`,
  percent: (value) => `${formatNumber(value)} %`,
}

export const formatAs = (unit, value) =>
  value === null || value === undefined || !Number.isFinite(value) ? '–' : byUnit[unit](value)
