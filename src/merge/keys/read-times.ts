/**
 * Dates and times as pairs. Text is read in ISO style only, which is unlike every other DateStyle; any other form is
 * refused, never guessed. Follows `EncodeDateOnly`, `EncodeDateTime` and `EncodeTimezone` in src/backend/utils/adt/datetime.c.
 */
import { engineError } from '../../errors/engine-error.js'
import { int32At } from '../rows/row-frame.js'
import { pair } from './pair-comparator.js'

const DASH = 45
const DOT = 46
const COLON = 58
const ZERO = 48
const BLANK = 32
const PLUS = 43
const LETTER_B = 66
const LETTER_I = 105

const DAY_SECONDS = 86_400

/** Where the cursor of the readers below stands. */
let at = 0

/** The value is not written as we can compare it. */
export function refuseForm(type: string): never {
  throw engineError('MERGE_VALUE_FORM', { type })
}

/** Digits at the cursor; −1 when there are fewer than `least`. */
function digits(bytes: Buffer, to: number, least: number): number {
  const start = at
  let value = 0
  while (at < to) {
    const digit = (bytes[at] as number) - ZERO
    if (digit < 0 || digit > 9) break
    value = value * 10 + digit
    at++
  }
  return at - start < least ? -1 : value
}

/** Passes one byte; false when another stands there. */
function pass(bytes: Buffer, to: number, byte: number): boolean {
  if (at >= to || bytes[at] !== byte) return false
  at++
  return true
}

/** The infinities are written as words. */
function isInfinity(bytes: Buffer, from: number, to: number): boolean {
  const negative = bytes[from] === DASH
  const start = negative ? from + 1 : from
  if (bytes[start] !== LETTER_I || to - start !== 8) return false
  pair[0] = negative ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  pair[1] = 0
  return true
}

/** The end without ` BC`. */
const withoutEra = (bytes: Buffer, from: number, to: number): number =>
  to - from > 3 && bytes[to - 2] === LETTER_B ? to - 3 : to

/** The date at the cursor as year × 10,000 + month × 100 + day, where the year before 1 is 0; undefined when it is none. */
function dateAt(bytes: Buffer, to: number, isBefore: boolean): number | undefined {
  const year = digits(bytes, to, 4)
  if (year < 0 || !pass(bytes, to, DASH)) return undefined
  const month = digits(bytes, to, 2)
  if (month < 1 || month > 12 || !pass(bytes, to, DASH)) return undefined
  const day = digits(bytes, to, 2)
  if (day < 1 || day > 31) return undefined
  return (isBefore ? 1 - year : year) * 10_000 + month * 100 + day
}

export function readDateText(bytes: Buffer, from: number, to: number): void {
  if (isInfinity(bytes, from, to)) return
  const end = withoutEra(bytes, from, to)
  at = from
  const date = dateAt(bytes, end, end < to)
  if (date === undefined || at !== end) refuseForm('date')
  pair[0] = date
  pair[1] = 0
}

/** Days from 0000-03-01 of the proleptic Gregorian calendar. */
function dayNumber(date: number): number {
  const year = Math.floor(date / 10_000)
  const rest = date - year * 10_000
  const month = Math.floor(rest / 100)
  const shifted = month > 2 ? year : year - 1
  const ofYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5)
  const centuries = Math.floor(shifted / 100)
  return (
    shifted * 365 +
    Math.floor(shifted / 4) -
    centuries +
    Math.floor(centuries / 4) +
    ofYear +
    (rest - month * 100)
  )
}

/** Microseconds of the last time that was read, below its second. */
let micros = 0

/** HH:MM:SS[.ffffff] at the cursor in seconds; undefined when it is none. */
function timeAt(bytes: Buffer, to: number): number | undefined {
  const hour = digits(bytes, to, 2)
  if (hour < 0 || !pass(bytes, to, COLON)) return undefined
  const minute = digits(bytes, to, 2)
  if (minute < 0 || !pass(bytes, to, COLON)) return undefined
  const second = digits(bytes, to, 2)
  if (second < 0) return undefined
  micros = 0
  if (pass(bytes, to, DOT)) {
    const start = at
    micros = digits(bytes, to, 1)
    if (micros < 0 || at - start > 6) return undefined
    for (let i = at - start; i < 6; i++) micros *= 10
  }
  return hour * 3600 + minute * 60 + second
}

/** ±HH[:MM[:SS]] at the cursor in seconds east; undefined when it is none. */
function zoneAt(bytes: Buffer, to: number): number | undefined {
  const negative = bytes[at] === DASH
  if (!(negative || bytes[at] === PLUS)) return undefined
  at++
  let seconds = digits(bytes, to, 2) * 3600
  if (seconds < 0) return undefined
  if (pass(bytes, to, COLON)) seconds += digits(bytes, to, 2) * 60
  if (pass(bytes, to, COLON)) seconds += digits(bytes, to, 2)
  return negative ? -seconds : seconds
}

/** Leaves [seconds, microseconds]; with a zone, of UTC. */
function readMoment(bytes: Buffer, from: number, to: number, isZoned: boolean): boolean {
  if (isInfinity(bytes, from, to)) return true
  const end = withoutEra(bytes, from, to)
  at = from
  const date = dateAt(bytes, end, end < to)
  if (date === undefined || !pass(bytes, end, BLANK)) return false
  const time = timeAt(bytes, end)
  const zone = isZoned ? zoneAt(bytes, end) : 0
  if (time === undefined || zone === undefined || at !== end) return false
  pair[0] = dayNumber(date) * DAY_SECONDS + time - zone
  pair[1] = micros
  return true
}

export function readTimestampText(bytes: Buffer, from: number, to: number): void {
  if (!readMoment(bytes, from, to, false)) refuseForm('timestamp')
}

export function readTimestamptzText(bytes: Buffer, from: number, to: number): void {
  if (!readMoment(bytes, from, to, true)) refuseForm('timestamp with time zone')
}

/** timetz: the moment in UTC decides, then the zone, counted west. @see `timetz_cmp_internal` */
function setZonedTime(dayMicros: number, west: number): void {
  pair[0] = dayMicros + west * 1e6
  pair[1] = west
}

export function readTimetzText(bytes: Buffer, from: number, to: number): void {
  at = from
  const time = timeAt(bytes, to)
  const zone = zoneAt(bytes, to)
  if (time === undefined || zone === undefined || at !== to) refuseForm('time with time zone')
  setZonedTime(time * 1e6 + micros, -zone)
}

export function readTimetz(bytes: Buffer, from: number): void {
  const dayMicros = int32At(bytes, from) * 4294967296 + (int32At(bytes, from + 4) >>> 0)
  setZonedTime(dayMicros, int32At(bytes, from + 8))
}
