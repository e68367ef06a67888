/**
 * Which comparator orders a type in text or binary form as PostgreSQL's default btree class does. A type that is not
 * listed is refused: enums, arrays, ranges, records, jsonb and everything that is not built in.
 */
import { BytesComparator } from './bytes-comparator.js'
import type { Comparator } from './comparator.js'
import { PairComparator, type PairReader } from './pair-comparator.js'
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
import { typeOids } from './type-oids.js'

const BLANK = 32

/** bpchar: trailing blanks do not count. */
function withoutBlanks(bytes: Buffer, from: number, to: number): number {
  let end = to
  while (end > from && bytes[end - 1] === BLANK) end--
  return end
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
