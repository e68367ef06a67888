/**
 * What csv-parse is good for, off the path of the bytes: column names from the header record, a guess at another delimiter when
 * they are not the table's, the fields of a row that was rejected. Text format goes by the splitter's own rules.
 */
import type { CopyOptions } from '../../copy/copy-options.js'
import { makeRowSplitter } from '../../copy/row-splitter.js'
import { unescapeText } from '../../copy/text-splitter.js'
import { engineError } from '../../errors/engine-error.js'
import type { CopyTable } from '../copy-target.js'

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

/** A header record, whose file it is, and the columns that it may name. */
export interface HeaderSource {
  readonly header: Buffer
  readonly name: string
  readonly table: CopyTable
}

/** The names in a header record. @throws COPY_HEADER_EMPTY; COPY_COLUMN_MISSING where another delimiter would do */
export async function readHeader(options: CopyOptions, source: HeaderSource): Promise<string[]> {
  const { header, name, table } = source
  const names =
    options.format === 'csv' ? await csvNames(options, header, name) : textNames(options, header)
  if (names.length === 0 || names.some((one) => one === ''))
    throw engineError('COPY_HEADER_EMPTY', { name })
  const stranger = strangerIn(names, table)
  const other =
    stranger === undefined || options.format !== 'csv'
      ? undefined
      : await otherDelimiter(options, source)
  if (stranger !== undefined && other !== undefined)
    throw engineError(
      'COPY_COLUMN_MISSING',
      { column: stranger, table: table.name },
      { hint: `the header names columns of the table with --delimiter '${other}'` },
    )
  return names
}

/** A name that is no column of the table, or the second time. */
function strangerIn(names: readonly string[], table: CopyTable): string | undefined {
  const left = new Set(table.columns.map(({ name }) => name))
  return names.find((name) => !left.delete(name))
}

const delimiters = [',', ';', '\t', '|', ':']

/** Another delimiter that makes the header name columns of the table, as users write it. */
async function otherDelimiter(
  options: CopyOptions,
  { header, name, table }: HeaderSource,
): Promise<string | undefined> {
  for (const one of delimiters) {
    const names = await csvNames({ ...options, delimiter: one.charCodeAt(0) }, header, name)
    if (strangerIn(names, table) === undefined) return one === '\t' ? '\\t' : one
  }
  return undefined
}

/** How many fields a rejected row has, for who repairs it; undefined when csv-parse cannot tell. */
export async function fieldCounter(
  options: CopyOptions,
): Promise<((row: Buffer) => number | undefined) | undefined> {
  if (options.format !== 'csv') return undefined
  const { parse } = await import('csv-parse/sync')
  return (row) => {
    try {
      const [fields] = parse(row, { ...dialectOf(options), to: 1 }) as string[][]
      return fields?.length
    } catch {
      return undefined
    }
  }
}

const dialectOf = (options: CopyOptions) => ({
  delimiter: String.fromCharCode(options.delimiter),
  quote: String.fromCharCode(options.quote),
  escape: String.fromCharCode(options.escape),
  relax_quotes: true,
})

async function csvNames(options: CopyOptions, header: Buffer, name: string): Promise<string[]> {
  // Loaded only here: most loads have no header of csv.
  const { CsvError, parse } = await import('csv-parse/sync')
  try {
    const records = parse(header, { ...dialectOf(options), bom: true, to: 1 }) as string[][]
    return records[0] ?? []
  } catch (error) {
    if (error instanceof CsvError)
      throw engineError('COPY_HEADER_EMPTY', { name }, { cause: error })
    throw error
  }
}

function textNames(options: CopyOptions, header: Buffer): string[] {
  const text = header.toString().replace(/^\ufeff|\r?\n$|\r$/g, '')
  return text.split(String.fromCharCode(options.delimiter)).map((field) => {
    const bytes = Buffer.from(field)
    const into = Buffer.alloc(bytes.length)
    return into.toString('utf8', 0, unescapeText(bytes, 0, bytes.length, into))
  })
}
