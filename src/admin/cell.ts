/** Values of the console's tables as PostgreSQL sends them, in text and binary. */
import type { FieldDescription } from '../wire/backend-messages.js'
import type { Cell, ColumnType } from './show-table.js'

/** OIDs and sizes of `pg_type.dat`. */
const types: Readonly<Record<ColumnType, { oid: number; size: number }>> = {
  text: { oid: 25, size: -1 },
  int4: { oid: 23, size: 4 },
  int8: { oid: 20, size: 8 },
  numeric: { oid: 1700, size: -1 },
  bool: { oid: 16, size: 1 },
}

export function fieldOf(
  column: { readonly name: string; readonly type: ColumnType },
  format: number,
): FieldDescription {
  const { oid, size } = types[column.type]
  return {
    name: column.name,
    tableOid: 0,
    columnNumber: 0,
    typeOid: oid,
    typeSize: size,
    typeModifier: -1,
    format,
  }
}

export function encodeCell(cell: Cell, type: ColumnType, format: number): Buffer | string | null {
  if (cell === null) return null
  if (format === 0) return typeof cell === 'boolean' ? (cell ? 't' : 'f') : String(cell)
  switch (type) {
    case 'text':
      return String(cell)
    case 'bool':
      return Buffer.from([cell ? 1 : 0])
    case 'int4': {
      const bytes = Buffer.alloc(4)
      bytes.writeInt32BE(Number(cell))
      return bytes
    }
    case 'int8': {
      const bytes = Buffer.alloc(8)
      bytes.writeBigInt64BE(BigInt(cell))
      return bytes
    }
    case 'numeric':
      return encodeNumeric(Number(cell))
  }
}

/** A whole number as numeric_send writes it: its digits to the base of 10,000, without zeros at the end. */
function encodeNumeric(whole: number): Buffer {
  const digits: number[] = []
  for (let rest = Math.abs(whole); rest > 0; rest = Math.floor(rest / 10_000))
    digits.unshift(rest % 10_000)
  const weight = Math.max(0, digits.length - 1)
  while (digits.at(-1) === 0) digits.pop()
  const bytes = Buffer.alloc(8 + 2 * digits.length)
  bytes.writeInt16BE(digits.length, 0)
  bytes.writeInt16BE(weight, 2)
  bytes.writeUInt16BE(whole < 0 ? 0x4000 : 0, 4)
  digits.forEach((digit, i) => {
    bytes.writeInt16BE(digit, 8 + 2 * i)
  })
  return bytes
}
