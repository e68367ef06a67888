/** How many lines a row is to a server that reads it first: as long as it has seen no line end, it does not count newlines inside quotes. */
import type { CopyOptions } from './copy-options.js'
import type { CopyLayout } from './copy-row.js'
import { makeRowSplitter } from './row-splitter.js'

export function firstLines(
  options: CopyOptions,
  layout: CopyLayout,
  row: readonly Buffer[],
): number {
  const { keyIndex: _, ...keyless } = layout
  const splitter = makeRowSplitter({ ...options, header: 'none' }, keyless)
  const nowhere = { header: () => undefined, row: () => undefined }
  try {
    for (const bytes of row) splitter.push(bytes, nowhere)
    splitter.finish(nowhere)
  } catch {
    // A row that is broken off inside quotes has lines, too.
  }
  return splitter.line
}
