/**
 * Which comparator orders a type in text or binary form as PostgreSQL's default btree class does. A type that is not
 * listed is refused: enums, arrays, ranges, records, jsonb and everything that is not built in.
 */
import { BitsComparator } from './bits-comparator.js'
import { BytesComparator } from './bytes-comparator.js'
import type { Comparator } from './comparator.js'
import { NetworkComparator } from './network-comparator.js'
import { NumericComparator } from './numeric-comparator.js'
import { PairComparator, type PairReader } from './pair-comparator.js'
import { readInterval, readIntervalText } from './read-interval.js'
import {
  readBoolText,
  readByte,
  readCharText,
  readFloat4,
  readFloat8,
  readFloatText,
  readInt2,
  readInt4,
  readInt8,
  readIntegerDigits,
  readLsnText,
  readUnsigned4,
  readUnsigned8,
} from './read-numbers.js'
import {
  readDateText,
  readTimestampText,
  readTimestamptzText,
  readTimetz,
  readTimetzText,
  refuseForm,
} from './read-times.js'
import { typeOids } from './type-oids.js'

const BLANK = 32

/** bpchar: trailing blanks do not count. */
function withoutBlanks(bytes: Buffer, from: number, to: number): number {
  let end = to
  while (end > from && bytes[end - 1] === BLANK) end--
  return end
}

const BACKSLASH = 92

/** bytea in text form: hexadecimal only, which sorts as the bytes do. */
function hexadecimal(bytes: Buffer, from: number, to: number): number {
  if (bytes[from] !== BACKSLASH || bytes[from + 1] !== 0x78) refuseForm('bytea')
  return to
}

const pairs = (read: PairReader) => (): Comparator => new PairComparator(read)
const plain = (): Comparator => new BytesComparator()

/** [text, binary] */
type Makers = readonly [(() => Comparator) | undefined, (() => Comparator) | undefined]

const makers = new Map<number, Makers>([
  [typeOids.bool, [pairs(readBoolText), pairs(readByte)]],
  [typeOids.char, [pairs(readCharText), pairs(readByte)]],
  [typeOids.int2, [pairs(readIntegerDigits), pairs(readInt2)]],
  [typeOids.int4, [pairs(readIntegerDigits), pairs(readInt4)]],
  [typeOids.int8, [pairs(readIntegerDigits), pairs(readInt8)]],
  [typeOids.oid, [pairs(readIntegerDigits), pairs(readUnsigned4)]],
  [typeOids.xid8, [pairs(readIntegerDigits), pairs(readUnsigned8)]],
  [typeOids.float4, [pairs(readFloatText), pairs(readFloat4)]],
  [typeOids.float8, [pairs(readFloatText), pairs(readFloat8)]],
  [typeOids.pgLsn, [pairs(readLsnText), pairs(readUnsigned8)]],
  [typeOids.uuid, [plain, plain]],
  [typeOids.macaddr, [plain, plain]],
  [typeOids.macaddr8, [plain, plain]],
  [typeOids.bytea, [() => new BytesComparator(hexadecimal), plain]],
  // the text of money depends on lc_monetary
  [typeOids.money, [undefined, pairs(readInt8)]],
  [typeOids.numeric, [() => new NumericComparator(false), () => new NumericComparator(true)]],
  [typeOids.date, [pairs(readDateText), pairs(readInt4)]],
  [typeOids.time, [plain, pairs(readInt8)]],
  [typeOids.timetz, [pairs(readTimetzText), pairs(readTimetz)]],
  [typeOids.timestamp, [pairs(readTimestampText), pairs(readInt8)]],
  [typeOids.timestamptz, [pairs(readTimestamptzText), pairs(readInt8)]],
  [typeOids.interval, [pairs(readIntervalText), pairs(readInterval)]],
  [typeOids.inet, [() => new NetworkComparator(false), () => new NetworkComparator(true)]],
  [typeOids.cidr, [() => new NetworkComparator(false), () => new NetworkComparator(true)]],
  [typeOids.bit, [plain, () => new BitsComparator()]],
  [typeOids.varbit, [plain, () => new BitsComparator()]],
])

/** Types with a collation, each with its comparator by bytes. */
const texts = new Map<number, () => Comparator>([
  [typeOids.text, plain],
  [typeOids.varchar, plain],
  [typeOids.bpchar, () => new BytesComparator(withoutBlanks)],
])

export interface ComparedColumn {
  readonly typeOid: number
  /** 0 text, 1 binary. */
  readonly format: number
  /** Text stands in the order of its bytes. */
  readonly bytewise: boolean
}

/** A comparator with no values in it; undefined for what is not ordered here. `name` is always bytewise. */
export function comparatorOf(column: ComparedColumn): Comparator | undefined {
  const { typeOid, format, bytewise } = column
  if (typeOid === typeOids.name) return plain()
  const text = texts.get(typeOid)
  if (text) return bytewise ? text() : undefined
  return makers.get(typeOid)?.[format === 0 ? 0 : 1]?.()
}
