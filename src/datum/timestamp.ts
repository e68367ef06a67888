/**
 * date, timestamp and timestamptz in text form: only what reads the same under every DateStyle, TimeZone and date order.
 * ISO 8601 forms, `infinity`, `epoch`, BC. What depends on the session (a zone left out, a zone's name, 1/2/2024, 'today')
 * is 'ambiguous', never guessed. Follows src/backend/utils/adt/{date,timestamp,datetime}.c.
 */
import { integerWords, setWords, setWordsOfBigInt } from './integer.js'

export type TimeStatus = 'ok' | 'syntax' | 'range' | 'ambiguous'

const form =
  /^(?:(\d{4,7})-(\d{1,2})-(\d{1,2})|(\d{4})(\d{2})(\d{2}))(?:[ tT]\s*(\d{1,2}):(\d{2})(?::(\d{2})(?:\.(\d*))?)?\s*(?:(z|utc|gmt)|([+-])(\d{1,2})(?::?(\d{2})(?::?(\d{2}))?)?)?)?(?:\s*(bc|ad))?$/i

const monthDays = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Days from 2000-01-01 in the proleptic Gregorian calendar; `year` counts 0 as 1 BC. */
function daysFrom(year: number, month: number, day: number): number {
  const shifted = month > 2 ? year : year - 1
  const era = Math.floor(shifted / 400)
  const yearOfEra = shifted - era * 400
  const dayOfYear = Math.floor((153 * (month > 2 ? month - 3 : month + 9) + 2) / 5) + day - 1
  const dayOfEra =
    yearOfEra * 365 + Math.floor(yearOfEra / 4) - Math.floor(yearOfEra / 100) + dayOfYear
  return era * 146097 + dayOfEra - 730425
}

interface Moment {
  days: number
  micros: number
  /** Seconds east of UTC; undefined when not written. */
  offset: number | undefined
}

function readDate(match: RegExpExecArray): number | 'range' {
  const year = Number(match[1] ?? match[4])
  const month = Number(match[2] ?? match[5])
  const day = Number(match[3] ?? match[6])
  const before = match[16]?.toLowerCase() === 'bc'
  if (year === 0 || month < 1 || month > 12 || day < 1) return 'range'
  const counted = before ? 1 - year : year
  const leap = counted % 4 === 0 && (counted % 100 !== 0 || counted % 400 === 0)
  if (day > (month === 2 && leap ? 29 : monthDays[month - 1]!)) return 'range'
  return daysFrom(counted, month, day)
}

function readMoment(text: string): Moment | TimeStatus {
  const match = form.exec(text)
  if (!match) return 'ambiguous'
  const days = readDate(match)
  if (days === 'range') return 'range'
  const hour = Number(match[7] ?? 0)
  const minute = Number(match[8] ?? 0)
  const second = Number(match[9] ?? 0)
  const fraction = match[10] ?? ''
  if (fraction.length > 6) return 'ambiguous'
  const micros = (hour * 3600 + minute * 60 + second) * 1_000_000 + Number(fraction.padEnd(6, '0'))
  if (minute > 59 || second > 60 || micros > 86_400_000_000) return 'range'
  const offset = readOffset(match)
  return offset === 'range' ? 'range' : { days, micros, offset }
}

function readOffset(match: RegExpExecArray): number | undefined | 'range' {
  if (match[11]) return 0
  if (!match[12]) return undefined
  const hours = Number(match[13])
  const minutes = Number(match[14] ?? 0)
  const seconds = Number(match[15] ?? 0)
  if (hours > 15 || minutes > 59 || seconds > 59) return 'range'
  const total = hours * 3600 + minutes * 60 + seconds
  return match[12] === '-' ? -total : total
}

const clean = (text: string): string => text.replace(/^\s+|\s+$/g, '')

/** `epoch` and the infinities; undefined for everything else. */
function readWord(text: string): 'infinity' | '-infinity' | 'epoch' | undefined {
  const word = text.toLowerCase()
  if (word === 'infinity' || word === '+infinity') return 'infinity'
  if (word === '-infinity') return '-infinity'
  return word === 'epoch' ? 'epoch' : undefined
}

/** Days since 2000-01-01 into `integerWords`, the infinities as PostgreSQL stores them. */
export function readDateText(text: string): TimeStatus {
  const trimmed = clean(text)
  const word = readWord(trimmed)
  if (word) {
    setWords(word === 'infinity' ? 0x7fffffff : word === 'epoch' ? -10957 : -0x80000000)
    return 'ok'
  }
  const moment = readMoment(trimmed)
  if (typeof moment === 'string') return moment
  // 4714-11-24 BC to 5874897-12-31.
  if (moment.days < -2451545 || moment.days > 2145031948) return 'range'
  setWords(moment.days)
  return 'ok'
}

/** Microseconds since 2000-01-01 00:00 (UTC for timestamptz) into `integerWords`. */
export function readTimestampText(text: string, zoned: boolean): TimeStatus {
  const trimmed = clean(text)
  const word = readWord(trimmed)
  if (word === 'epoch') {
    setWords(-946_684_800_000_000)
    return 'ok'
  }
  if (word) {
    integerWords[0] = word === 'infinity' ? 0x7fffffff : -0x80000000
    integerWords[1] = word === 'infinity' ? -1 : 0
    return 'ok'
  }
  const moment = readMoment(trimmed)
  if (typeof moment === 'string') return moment
  if (zoned && moment.offset === undefined) return 'ambiguous'
  return setMicros(moment.days, moment.micros - (zoned ? moment.offset! * 1_000_000 : 0))
}

function setMicros(days: number, micros: number): TimeStatus {
  // 4714-11-24 BC to 294276-12-31.
  if (days < -2451545 || days > 106751991) return 'range'
  if (days > -100_000 && days < 100_000) setWords(days * 86_400_000_000 + micros)
  else setWordsOfBigInt(BigInt(days) * 86_400_000_000n + BigInt(micros))
  return 'ok'
}
