/** Text form of a key → its binary wire form, written apart from src/datum so that it can check it. */

const microsOf = (text: string): bigint => {
  const match = /^(\d+)-(\d+)-(\d+) (\d+):(\d+):(\d+)(?:\.(\d+))?/.exec(text)!
  const at = (i: number) => Number(match[i])
  // Date.UTC takes years below 100 for 19xx: count 400 years later, which have the same calendar.
  const later = Date.UTC(at(1) + 400, at(2) - 1, at(3), at(4), at(5), at(6))
  const ms = later - Date.UTC(2400, 0, 1)
  return BigInt(ms) * 1000n + BigInt((match[7] ?? '').padEnd(6, '0'))
}

const int = (size: number, value: bigint): Buffer => {
  const bytes = Buffer.alloc(size)
  for (let i = 0; i < size; i++) bytes[size - 1 - i] = Number((value >> BigInt(8 * i)) & 255n)
  return bytes
}

function numericBinary(text: string): Buffer {
  const words = (...values: number[]) => Buffer.concat(values.map((v) => int(2, BigInt(v))))
  if (/nan/i.test(text)) return words(0, 0, 0xc000, 0)
  if (/inf/i.test(text)) return words(0, 0, text.startsWith('-') ? 0xf000 : 0xd000, 0)
  const [mantissa, exponent = '0'] = text.replace(/^[+-]/, '').toLowerCase().split('e')
  let [whole, fraction = ''] = mantissa!.split('.') as [string, string?]
  const shift = Number(exponent)
  if (shift > 0) {
    whole += fraction.padEnd(shift, '0').slice(0, shift)
    fraction = fraction.slice(shift)
  } else if (shift < 0) {
    fraction = whole.padStart(-shift, '0').slice(shift) + fraction
    whole = whole.slice(0, shift)
  }
  const scale = fraction.length
  whole = whole.padStart(Math.ceil(whole.length / 4) * 4, '0')
  fraction = fraction.padEnd(Math.ceil(scale / 4) * 4, '0')
  const groups = (whole + fraction).match(/.{4}/g) ?? []
  const digits = groups.map(Number)
  return words(
    digits.length,
    whole.length / 4 - 1,
    text.startsWith('-') ? 0x4000 : 0,
    scale,
    ...digits,
  )
}

export function binaryOf(type: string, text: string): Buffer {
  switch (type) {
    case 'smallint':
      return int(2, BigInt(text))
    case 'integer':
      return int(4, BigInt(text))
    case 'bigint':
      return int(8, BigInt(text))
    case 'uuid':
      return Buffer.from(text.replace(/[-{}]/g, ''), 'hex')
    case 'numeric':
      return numericBinary(text)
    case 'date':
      if (text.endsWith('infinity')) return int(4, text[0] === '-' ? -(2n ** 31n) : 2n ** 31n - 1n)
      return int(4, microsOf(`${text} 00:00:00`) / 86_400_000_000n)
    case 'timestamp':
    case 'timestamptz':
      if (text.endsWith('infinity')) return int(8, text[0] === '-' ? -(2n ** 63n) : 2n ** 63n - 1n)
      return int(8, microsOf(text))
    default:
      return Buffer.from(text)
  }
}
