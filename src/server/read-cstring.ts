import { engineError } from '../errors/engine-error.js'
import { tagName } from '../wire/frame-reader.js'

/** A zero-terminated UTF-8 string at `at`, and the offset behind its zero. @throws WIRE_TRUNCATED */
export function readCString(
  buffer: Buffer,
  at: number,
  end: number,
): { text: string; next: number } {
  const zero = buffer.indexOf(0, at)
  if (zero < 0 || zero >= end) {
    throw engineError('WIRE_TRUNCATED', { tag: tagName(0x53), field: 'string' })
  }
  return { text: buffer.toString('utf8', at, zero), next: zero + 1 }
}
