/** Random data of COPY's binary format, whole and broken. */
import type { Random } from './copy-random.js'

type ColumnType = 'text' | 'bigint' | 'int'

const SIGNATURE = Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1')

const int32 = (value: number) => {
  const bytes = Buffer.alloc(4)
  bytes.writeInt32BE(value)
  return bytes
}

function header(random: Random): Buffer {
  const flags = random.chance(0.02) ? random.pick([1, 1 << 16, 1 << 20]) : 0
  const extension = Buffer.alloc(random.chance(0.2) ? random.below(9) : 0, 0x2a)
  return Buffer.concat([SIGNATURE, int32(flags), int32(extension.length), extension])
}

function value(random: Random, type: ColumnType): Buffer {
  if (type === 'text') return Buffer.from(random.some(5, ['a', 'bc', 'ä', '€', '\n', '"', '1']))
  if (random.chance(0.03)) return Buffer.alloc(random.below(9))
  if (type === 'int') return int32(random.below(1000) - 500)
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64BE(BigInt(random.below(1_000_000)) - 500_000n)
  return bytes
}

function row(random: Random, types: readonly ColumnType[]): Buffer {
  const count = random.chance(0.98) ? types.length : random.below(5)
  const parts: Buffer[] = [Buffer.from([0, count])]
  for (let index = 0; index < count; index++) {
    if (random.chance(0.12)) {
      parts.push(int32(random.chance(0.95) ? -1 : -2))
      continue
    }
    const bytes = value(random, types[index] ?? 'text')
    parts.push(int32(bytes.length), bytes)
  }
  return Buffer.concat(parts)
}

export function makeBinaryData(random: Random, types: readonly ColumnType[]): Buffer {
  const rows = Array.from({ length: random.below(7) }, () => row(random, types))
  const trailer = random.chance(0.8) ? Buffer.from([0xff, 0xff]) : Buffer.alloc(0)
  const behind = Buffer.from(random.chance(0.04) ? random.some(4, ['a', '\0', '\n']) : '')
  const whole = Buffer.concat([header(random), ...rows, trailer, behind])
  if (random.chance(0.15)) return whole.subarray(0, random.below(whole.length + 1))
  for (let count = random.chance(0.2) ? 1 + random.below(2) : 0; count > 0; count--)
    whole[random.below(whole.length)] = random.below(256)
  return whole
}
