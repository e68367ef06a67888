/** uuid in text form: `string_to_uuid` in src/backend/utils/adt/uuid.c. Braces, upper case and hyphens after any two bytes pass. */

const nibbles = new Int8Array(256).fill(-1)
for (let i = 0; i < 16; i++) {
  nibbles['0123456789abcdef'.charCodeAt(i)] = i
  nibbles['0123456789ABCDEF'.charCodeAt(i)] = i
}

/** Reads bytes[from, to) into `out` (16 bytes); false when PostgreSQL would reject it. */
export function readUuidText(
  bytes: Uint8Array,
  from: number,
  to: number,
  out: Uint8Array,
): boolean {
  let at = from
  let end = to
  if (bytes[at] === 0x7b) {
    if (bytes[end - 1] !== 0x7d) return false
    at++
    end--
  }
  for (let i = 0; i < 16; i++) {
    if (at + 2 > end) return false
    const high = nibbles[bytes[at]!]!
    const low = nibbles[bytes[at + 1]!]!
    if ((high | low) < 0) return false
    out[i] = (high << 4) | low
    at += 2
    if ((i & 1) === 1 && i < 15 && at < end && bytes[at] === 0x2d) at++
  }
  return at === end
}
