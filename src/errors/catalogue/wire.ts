import type { CatalogueEntry } from '../catalogue-entry.js'

/** Bytes that break protocol 3.x. */
export const wireErrors = {
  WIRE_FRAME_LENGTH: {
    sqlstate: '08P01',
    severity: 'FATAL',
    message: 'invalid length {length} of message "{tag}"',
    hint: 'the other side does not speak protocol 3, or the stream is out of step',
  },
  WIRE_FRAME_TOO_LONG: {
    sqlstate: '08P01',
    severity: 'FATAL',
    message: 'message "{tag}" of {length} bytes is longer than the limit of {limit}',
  },
  WIRE_TRUNCATED: {
    sqlstate: '08P01',
    message: 'message "{tag}" ends before its field "{field}"',
  },
  WIRE_BAD_FIELD: { sqlstate: '08P01', message: 'message "{tag}" has an invalid {field}: {value}' },
  WIRE_UNEXPECTED: { sqlstate: '08P01', message: 'message "{tag}" is not allowed {where}' },
} as const satisfies Record<string, CatalogueEntry>
