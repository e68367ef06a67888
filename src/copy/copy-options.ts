/**
 * The options of COPY, old and new syntax, as PostgreSQL reads and checks them, with its messages and SQLSTATEs.
 * The server checks the statement too; this is what the splitters go by, so nothing that it accepts may mean something else here.
 * Follows ProcessCopyOptions in PostgreSQL's `src/backend/commands/copy.c`.
 */
import { engineError } from '../errors/engine-error.js'
import type { CopyEffect } from '../plan/effects.js'

export type CopyFormat = 'text' | 'csv' | 'binary'
/** `all` is `*`. */
export type ColumnChoice = 'all' | readonly string[]

export interface CopyOptions {
  readonly format: CopyFormat
  readonly header: 'none' | 'skip' | 'match'
  /** Single bytes. */
  readonly delimiter: number
  readonly quote: number
  readonly escape: number
  readonly nullMark: Buffer
  /** DEFAULT, from version 16. */
  readonly defaultMark: Buffer | undefined
  readonly forceQuote: ColumnChoice
  readonly forceNull: ColumnChoice
  readonly forceNotNull: ColumnChoice
  /** ENCODING; absent: the client encoding. */
  readonly encoding: string | undefined
  readonly freeze: boolean
  /** ON_ERROR, from version 17. */
  readonly onError: 'stop' | 'ignore'
  /** REJECT_LIMIT, from version 18. */
  readonly rejectLimit: number | undefined
}

type WrittenOption = CopyEffect['options'][number]

const known = new Set([
  'format',
  'freeze',
  'delimiter',
  'null',
  'default',
  'header',
  'quote',
  'escape',
  'force_quote',
  'force_not_null',
  'force_null',
  'encoding',
  'on_error',
  'reject_limit',
  'log_verbosity',
])

/**
 * Options of a COPY statement, checked. `COPY … BINARY` and `… CSV` count as FORMAT.
 * @throws 42601, 22023 or 0A000 with the message of PostgreSQL 15 (newer ones vary the wording)
 */
export function parseCopyOptions(effect: Pick<CopyEffect, 'options' | 'direction'>): CopyOptions {
  const written = collect(effect.options)
  const isFrom = effect.direction === 'in'
  const format = readFormat(written.get('format')?.value)
  const options: CopyOptions = {
    format,
    header: readHeader(written.get('header'), isFrom),
    ...readMarks(written, format),
    forceQuote: readColumns(written.get('force_quote'), 'force_quote'),
    forceNull: readColumns(written.get('force_null'), 'force_null'),
    forceNotNull: readColumns(written.get('force_not_null'), 'force_not_null'),
    encoding: written.get('encoding')?.value,
    freeze: readBoolean(written.get('freeze'), 'freeze'),
    onError: readOnError(written.get('on_error')?.value),
    rejectLimit: readRejectLimit(written.get('reject_limit')?.value),
  }
  checkModes(written, format)
  checkForce(options, isFrom)
  checkMarks(options)
  return options
}

/** Options from code: what is left out is PostgreSQL's default. */
export function makeCopyOptions(options: Readonly<Record<string, string>> = {}): CopyOptions {
  return parseCopyOptions({
    direction: 'in',
    options: Object.entries(options).map(([name, value]) => ({ name, value })),
  })
}

const syntax = (message: string) => engineError('COPY_OPTION_SYNTAX', { message })
const invalid = (message: string) => engineError('COPY_OPTION_VALUE', { message })
const unsupported = (message: string) => engineError('COPY_OPTION_UNSUPPORTED', { message })

function collect(options: readonly WrittenOption[]): Map<string, WrittenOption> {
  const written = new Map<string, WrittenOption>()
  for (const option of options) {
    const isFormat = option.value === undefined && /^(csv|binary|text)$/.test(option.name)
    const one = isFormat ? { name: 'format', value: option.name } : option
    if (!known.has(one.name)) throw syntax(`option "${one.name}" not recognized`)
    if (written.has(one.name)) throw syntax('conflicting or redundant options')
    written.set(one.name, one)
  }
  return written
}

function readFormat(value: string | undefined): CopyFormat {
  if (value === undefined) return 'text'
  if (value === 'text' || value === 'csv' || value === 'binary') return value
  throw invalid(`COPY format "${value}" not recognized`)
}

function readHeader(option: WrittenOption | undefined, isFrom: boolean): CopyOptions['header'] {
  if (option === undefined) return 'none'
  const value = option.value?.toLowerCase() ?? 'true'
  if (value === 'match') {
    if (!isFrom) throw unsupported('cannot use "match" with HEADER in COPY TO')
    return 'match'
  }
  if (['true', 'on', '1'].includes(value)) return 'skip'
  if (['false', 'off', '0'].includes(value)) return 'none'
  throw syntax('header requires a Boolean value or "match"')
}

function readBoolean(option: WrittenOption | undefined, name: string): boolean {
  if (option === undefined) return false
  const value = option.value?.toLowerCase() ?? 'true'
  if (['true', 'on', '1'].includes(value)) return true
  if (['false', 'off', '0'].includes(value)) return false
  throw syntax(`${name} requires a Boolean value`)
}

function readColumns(option: WrittenOption | undefined, name: string): ColumnChoice {
  if (option === undefined) return []
  if (option.list !== undefined)
    return option.list.length === 1 && option.list[0] === '*' ? 'all' : option.list
  if (option.value === '*') return 'all'
  throw invalid(`argument to option "${name}" must be a list of column names`)
}

function readOnError(value: string | undefined): CopyOptions['onError'] {
  const choice = value?.toLowerCase() ?? 'stop'
  if (choice === 'stop' || choice === 'ignore') return choice
  throw invalid(`COPY ON_ERROR "${value}" not recognized`)
}

function readRejectLimit(value: string | undefined): number | undefined {
  if (value === undefined) return undefined
  const limit = Number(value)
  if (!Number.isSafeInteger(limit) || limit <= 0)
    throw invalid(`REJECT_LIMIT (${value}) must be greater than zero`)
  return limit
}

type Marks = Pick<CopyOptions, 'delimiter' | 'quote' | 'escape' | 'nullMark' | 'defaultMark'>

function readMarks(written: Map<string, WrittenOption>, format: CopyFormat): Marks {
  const isCsv = format === 'csv'
  const delimiter = written.get('delimiter')?.value ?? (isCsv ? ',' : '\t')
  const quote = written.get('quote')?.value ?? '"'
  const escapeText = written.get('escape')?.value ?? quote
  const mark = written.get('default')?.value
  if (!isSingleByte(delimiter))
    throw unsupported('COPY delimiter must be a single one-byte character')
  if (isCsv && !isSingleByte(quote))
    throw unsupported('COPY quote must be a single one-byte character')
  if (isCsv && !isSingleByte(escapeText))
    throw unsupported('COPY escape must be a single one-byte character')
  return {
    delimiter: delimiter.charCodeAt(0),
    quote: quote.charCodeAt(0),
    escape: escapeText.charCodeAt(0),
    nullMark: Buffer.from(written.get('null')?.value ?? (isCsv ? '' : '\\N')),
    defaultMark: mark === undefined ? undefined : Buffer.from(mark),
  }
}

const isSingleByte = (text: string): boolean => text.length === 1 && text.charCodeAt(0) < 0x80

function checkModes(written: Map<string, WrittenOption>, format: CopyFormat): void {
  if (format === 'binary') {
    if (written.has('delimiter')) throw syntax('cannot specify DELIMITER in BINARY mode')
    if (written.has('null')) throw syntax('cannot specify NULL in BINARY mode')
    if (written.has('default')) throw syntax('cannot specify DEFAULT in BINARY mode')
    if (written.has('header')) throw unsupported('cannot specify HEADER in BINARY mode')
  }
  if (format === 'csv') return
  for (const name of ['quote', 'escape', 'force_quote', 'force_not_null', 'force_null'])
    if (written.has(name))
      throw unsupported(`COPY ${name.replaceAll('_', ' ')} available only in CSV mode`)
}

function checkForce(options: CopyOptions, isFrom: boolean): void {
  const { forceQuote, forceNull, forceNotNull } = options
  if (isFrom && forceQuote.length > 0)
    throw unsupported('COPY force quote only available using COPY TO')
  if (!isFrom && forceNotNull.length > 0)
    throw unsupported('COPY force not null only available using COPY FROM')
  if (!isFrom && forceNull.length > 0)
    throw unsupported('COPY force null only available using COPY FROM')
}

/** Characters that text format cannot use as a delimiter. */
const TEXT_RESERVED = /[\\.a-z0-9]/
const hasLineEnd = (text: string): boolean => /[\r\n]/.test(text)

function checkMarks(options: CopyOptions): void {
  if (options.format === 'binary') return
  const isCsv = options.format === 'csv'
  const delimiter = String.fromCharCode(options.delimiter)
  const quote = String.fromCharCode(options.quote)
  if (hasLineEnd(delimiter)) throw invalid('COPY delimiter cannot be newline or carriage return')
  checkMark(
    options.nullMark.toString('latin1'),
    'null',
    'NULL',
    isCsv ? [delimiter, quote] : [delimiter],
  )
  if (!isCsv && TEXT_RESERVED.test(delimiter))
    throw invalid(`COPY delimiter cannot be "${delimiter}"`)
  if (isCsv && delimiter === quote) throw invalid('COPY delimiter and quote must be different')
  // PostgreSQL accepts these, but no line could be told from a quote.
  if (isCsv && hasLineEnd(quote + String.fromCharCode(options.escape)))
    throw unsupported('COPY quote and escape cannot be newline or carriage return')
  if (options.defaultMark === undefined) return
  checkMark(
    options.defaultMark.toString('latin1'),
    'default',
    'DEFAULT',
    isCsv ? [delimiter, quote] : [delimiter],
  )
  if (options.defaultMark.equals(options.nullMark))
    throw invalid('NULL specification and DEFAULT specification cannot be the same')
}

function checkMark(mark: string, word: string, name: string, forbidden: readonly string[]): void {
  if (hasLineEnd(mark))
    throw invalid(`COPY ${word} representation cannot use newline or carriage return`)
  const [delimiter, quote] = forbidden
  if (delimiter !== undefined && mark.includes(delimiter))
    throw unsupported(`COPY delimiter must not appear in the ${name} specification`)
  if (quote !== undefined && mark.includes(quote))
    throw unsupported(`CSV quote character must not appear in the ${name} specification`)
}
