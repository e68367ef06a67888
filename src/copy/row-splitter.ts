/** Which splitter for which format. */
import { BinarySplitter } from './binary-splitter.js'
import type { CopyOptions } from './copy-options.js'
import type { CopyLayout, RowSplitter } from './copy-row.js'
import { CsvSplitter } from './csv-splitter.js'
import { checkSplittable } from './key-encoding.js'
import { TextSplitter } from './text-splitter.js'

/**
 * A splitter of COPY data: bytes in, rows out as byte ranges. Pure; holds one row at most (1 GB, as PostgreSQL).
 * @throws COPY_ENCODING_UNSAFE for encodings whose characters may contain ASCII bytes
 */
export function makeRowSplitter(options: CopyOptions, layout: CopyLayout): RowSplitter {
  if (options.format === 'binary') return new BinarySplitter(options, layout)
  checkSplittable(options.encoding ?? layout.encoding)
  return options.format === 'csv'
    ? new CsvSplitter(options, layout)
    : new TextSplitter(options, layout)
}
