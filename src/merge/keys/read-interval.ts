/** interval as a pair: a month is 30 days and a day 24 hours. Follows `interval_cmp_value` in src/backend/utils/adt/timestamp.c. */
import { int32At } from '../rows/row-frame.js'
import { pair } from './pair-comparator.js'
import { refuseForm } from './read-times.js'

const MONTH_DAYS = 30
const DAY_MICROS = 86_400_000_000

/** Leaves [days, microseconds of the day]. */
function setSpan(days: number, micros: number): void {
  const whole = Math.floor(micros / DAY_MICROS)
  pair[0] = days + whole
  pair[1] = micros - whole * DAY_MICROS
}

/** Int64 microseconds · Int32 days · Int32 months. The infinities have the ends of all three ranges, and so sort rightly. */
export function readInterval(bytes: Buffer, from: number): void {
  const high = int32At(bytes, from)
  const days = int32At(bytes, from + 8) + int32At(bytes, from + 12) * MONTH_DAYS
  if (high >= -0x200000 && high < 0x200000) {
    setSpan(days, high * 4294967296 + (int32At(bytes, from + 4) >>> 0))
    return
  }
  // beyond what a double holds exactly
  const micros = bytes.readBigInt64BE(from)
  const whole = Number(micros / BigInt(DAY_MICROS))
  setSpan(days + whole, Number(micros % BigInt(DAY_MICROS)))
}

const form =
  /^(?:([+-]?\d+) years?)?(?: ?([+-]?\d+) mons?)?(?: ?([+-]?\d+) days?)?(?: ?([+-]?)(\d{2,}):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?$/

/** IntervalStyle postgres only. */
export function readIntervalText(bytes: Buffer, from: number, to: number): void {
  const text = bytes.toString('latin1', from, to)
  if (text === 'infinity' || text === '-infinity') {
    pair[0] = text === 'infinity' ? Number.POSITIVE_INFINITY : Number.NEGATIVE_INFINITY
    pair[1] = 0
    return
  }
  const match = text === '' ? null : form.exec(text)
  if (!match) refuseForm('interval')
  const months = Number(match[1] ?? 0) * 12 + Number(match[2] ?? 0)
  const sign = match[4] === '-' ? -1 : 1
  const hours = Number(match[5] ?? 0)
  const dayHours = hours % 24
  const seconds = (dayHours * 60 + Number(match[6] ?? 0)) * 60 + Number(match[7] ?? 0)
  const micros = seconds * 1e6 + Number((match[8] ?? '').padEnd(6, '0'))
  const days = months * MONTH_DAYS + Number(match[3] ?? 0) + (sign * (hours - dayHours)) / 24
  setSpan(days, sign * micros)
}
