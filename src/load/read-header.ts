/** Column names from the header record of a file: csv-parse on a sample for csv, the splitter's own rules for text. */
import type { CopyOptions } from '../copy/copy-options.js'
import { makeRowSplitter } from '../copy/row-splitter.js'
import { unescapeText } from '../copy/text-splitter.js'
import { engineError } from '../errors/engine-error.js'

/** The header record at the start of `sample`, or undefined when it does not end in it. */
export function findHeader(options: CopyOptions, sample: Buffer): Buffer | undefined {
  let header: Buffer | undefined
  const splitter = makeRowSplitter({ ...options, header: 'skip' }, { table: '', columns: [] })
  try {
    splitter.push(sample, {
      header: (bytes, start, end) => {
        header = Buffer.from(bytes.subarray(start, end))
      },
      row: () => undefined,
    })
  } catch {
    // Rows after the header are read later, with their lines.
  }
  return header
}

/** The names in a header record. @throws COPY_HEADER_EMPTY */
export async function readHeader(
  options: CopyOptions,
  header: Buffer,
  name: string,
): Promise<string[]> {
  const names =
    options.format === 'csv' ? await csvNames(options, header, name) : textNames(options, header)
  if (names.length === 0 || names.some((one) => one === ''))
    throw engineError('COPY_HEADER_EMPTY', { name })
  return names
}

async function csvNames(options: CopyOptions, header: Buffer, name: string): Promise<string[]> {
  // Loaded only here: most loads have no header of csv.
  const { CsvError, parse } = await import('csv-parse/sync')
  try {
    const records = parse(header, {
      bom: true,
      delimiter: String.fromCharCode(options.delimiter),
      quote: String.fromCharCode(options.quote),
      escape: String.fromCharCode(options.escape),
      relax_quotes: true,
      to: 1,
    }) as string[][]
    return records[0] ?? []
  } catch (error) {
    if (error instanceof CsvError)
      throw engineError('COPY_HEADER_EMPTY', { name }, { cause: error })
    throw error
  }
}

function textNames(options: CopyOptions, header: Buffer): string[] {
  const text = header.toString().replace(/\r?\n$|\r$/, '')
  return text.split(String.fromCharCode(options.delimiter)).map((field) => {
    const bytes = Buffer.from(field)
    const into = Buffer.alloc(bytes.length)
    return into.toString('utf8', 0, unescapeText(bytes, 0, bytes.length, into))
  })
}
