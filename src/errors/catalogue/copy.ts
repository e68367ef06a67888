import type { CatalogueEntry } from '../catalogue-entry.js'

/** COPY: options, splitting into rows, loading. Wording of `copyfromparse.c` and `copy.c` where PostgreSQL has the same error. */
export const copyErrors = {
  COPY_OPTION_SYNTAX: { sqlstate: '42601', message: '{message}', exit: 2 },
  COPY_OPTION_VALUE: { sqlstate: '22023', message: '{message}', exit: 2 },
  COPY_OPTION_UNSUPPORTED: { sqlstate: '0A000', message: '{message}', exit: 2 },
  COPY_ENCODING_UNSAFE: {
    sqlstate: '0A000',
    message: 'cannot split COPY data in encoding "{encoding}"',
    hint: 'its characters may hold bytes that look like delimiters; send the data in UTF8',
    exit: 2,
  },
  COPY_KEY_ENCODING: {
    sqlstate: '0A000',
    message: 'cannot read a sharding key in encoding "{encoding}"',
    hint: 'send the data in UTF8',
    exit: 5,
  },
  COPY_KEY_ABSENT: {
    sqlstate: '0A000',
    message: 'COPY of sharded table "{table}" does not name its sharding key',
    hint: 'add the sharding key to the column list',
    exit: 5,
  },
  COPY_KEY_DEFAULT: {
    sqlstate: '0A000',
    message: 'cannot place a row whose sharding key is a default',
    hint: 'write the value of the sharding key',
    exit: 5,
  },
  COPY_LITERAL_CR: {
    sqlstate: '22P04',
    message: 'literal carriage return found in data',
    hint: 'Use "\\r" to represent carriage return.',
    exit: 5,
  },
  COPY_LITERAL_NEWLINE: {
    sqlstate: '22P04',
    message: 'literal newline found in data',
    hint: 'Use "\\n" to represent newline.',
    exit: 5,
  },
  COPY_UNQUOTED_CR: {
    sqlstate: '22P04',
    message: 'unquoted carriage return found in data',
    hint: 'Use quoted CSV field to represent carriage return.',
    exit: 5,
  },
  COPY_UNQUOTED_NEWLINE: {
    sqlstate: '22P04',
    message: 'unquoted newline found in data',
    hint: 'Use quoted CSV field to represent newline.',
    exit: 5,
  },
  COPY_END_MARKER_STYLE: {
    sqlstate: '22P04',
    message: 'end-of-copy marker does not match previous newline style',
    exit: 5,
  },
  COPY_END_MARKER_CORRUPT: { sqlstate: '22P04', message: 'end-of-copy marker corrupt', exit: 5 },
  COPY_END_MARKER_NOT_ALONE: {
    sqlstate: '22P04',
    message: 'end-of-copy marker is not alone on its line',
    exit: 5,
  },
  COPY_UNTERMINATED_QUOTE: { sqlstate: '22P04', message: 'unterminated CSV quoted field', exit: 5 },
  COPY_MISSING_DATA: { sqlstate: '22P04', message: 'missing data for column "{column}"', exit: 5 },
  COPY_EXTRA_DATA: {
    sqlstate: '22P04',
    message: 'extra data after last expected column',
    exit: 5,
  },
  COPY_SIGNATURE: { sqlstate: '22P04', message: 'COPY file signature not recognized', exit: 5 },
  COPY_BINARY_HEADER: { sqlstate: '22P04', message: 'invalid COPY file header ({what})', exit: 5 },
  COPY_BINARY_FLAGS: {
    sqlstate: '22P04',
    message: 'unrecognized critical flags in COPY file header',
    exit: 5,
  },
  COPY_FIELD_COUNT: {
    sqlstate: '22P04',
    message: 'row field count is {got}, expected {expected}',
    exit: 5,
  },
  COPY_FIELD_SIZE: { sqlstate: '22P04', message: 'invalid field size', exit: 5 },
  COPY_UNEXPECTED_EOF: { sqlstate: '22P04', message: 'unexpected EOF in COPY data', exit: 5 },
  COPY_AFTER_EOF: {
    sqlstate: '22P04',
    message: 'received copy data after EOF marker',
    exit: 5,
  },
  COPY_ROW_TOO_LONG: {
    sqlstate: '54000',
    message: 'COPY row is longer than {limit} bytes',
    hint: 'check that a quote is not left open',
    exit: 5,
  },
} as const satisfies Record<string, CatalogueEntry>
