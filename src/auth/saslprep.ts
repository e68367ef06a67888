/**
 * SASLprep (RFC 4013) of passwords, as PostgreSQL does it: a password that may not be prepared is used as it is.
 * @see `pg_saslprep` in `src/common/saslprep.c`
 */
import {
  inRanges,
  leftToRight,
  nothing,
  prohibited,
  rightToLeft,
  spaces,
  unassigned,
} from './saslprep-tables.js'

/** The prepared password; the password itself when it is ASCII, or has characters that are prohibited. */
export function saslprep(password: string): string {
  if (isAscii(password)) return password
  return prepare(password) ?? password
}

/** The bytes that PostgreSQL hashes for a password given as `text`. */
export function passwordBytes(password: string): Buffer {
  return Buffer.from(saslprep(password), 'utf8')
}

function isAscii(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x7f) return false
  return true
}

function prepare(password: string): string | undefined {
  let mapped = ''
  for (const character of password) {
    const code = character.codePointAt(0) as number
    if (inRanges(code, spaces)) mapped += ' '
    else if (!inRanges(code, nothing)) mapped += character
  }
  if (mapped === '') return undefined
  // PostgreSQL checks what was mapped, before it is normalised; RFC 4013 would check the result.
  const codes = Array.from(mapped, (character) => character.codePointAt(0) as number)
  if (codes.some((code) => inRanges(code, prohibited) || inRanges(code, unassigned))) {
    return undefined
  }
  return isBidirectionallySound(codes) ? mapped.normalize('NFKC') : undefined
}

/** RFC 3454, section 6: right-to-left text has no left-to-right character and has right-to-left ones at both ends. */
function isBidirectionallySound(codes: readonly number[]): boolean {
  if (!codes.some((code) => inRanges(code, rightToLeft))) return true
  return (
    !codes.some((code) => inRanges(code, leftToRight)) &&
    inRanges(codes[0] as number, rightToLeft) &&
    inRanges(codes.at(-1) as number, rightToLeft)
  )
}
