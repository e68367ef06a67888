/**
 * What the splitters of the three formats share: the row that they lend, and who takes it.
 * No object per row: one `RowKey` a splitter, overwritten for each row.
 */
import type { EngineError } from '../errors/engine-error.js'

/** Which table and columns the data is for. */
export interface CopyLayout {
  /** For messages: `COPY table, line N`. */
  readonly table: string
  /** Columns in the order of the data. */
  readonly columns: readonly string[]
  /** Index of the sharding key in `columns`; absent: keys are not looked for. */
  readonly keyIndex?: number
  /** False when the key's binary form does not depend on the encoding (numbers, dates, uuid). */
  readonly keyIsText?: boolean
  /** Client encoding when the options name none; UTF8 when absent. */
  readonly encoding?: string
  /** Major version of the servers, which decides what `\.` means; 15 when absent. */
  readonly serverMajor?: number
}

/** The key of the row at hand, decoded: unquoted, unescaped and in UTF-8 (text, csv), or as sent (binary). */
export interface RowKey {
  /** `none`: keys are not looked for. `default`: the row asks for the column's default. */
  kind: 'value' | 'null' | 'default' | 'none'
  /** Holds the key at start…end. Borrowed until the sink's `row` returns. */
  bytes: Buffer
  start: number
  end: number
  /** Line on which the row ends, counted as PostgreSQL counts; in binary the number of the row. */
  line: number
}

/** Takes the rows of a splitter. All bytes are borrowed until the call returns. */
export interface RowSink {
  /** The header record of text and csv with its line end, or the binary signature with flags and extension. Called once, before any row. */
  header(bytes: Buffer, start: number, end: number): void
  /** One row with its line end. The last row of the data may have none. */
  row(bytes: Buffer, start: number, end: number, key: RowKey): void
  /** A row whose key cannot be read: it ends before it, or its encoding is not known. Absent: the error is thrown. */
  bad?(error: EngineError, bytes: Buffer, start: number, end: number, line: number): void
  /**
   * Takes rows of the bytes being pushed that need no splitter, from `at`; where the first begins that it leaves. `line`: that
   * of the row before. How many they were, each one line, is `taken`. Absent: none.
   */
  takePlain?(at: number, end: number, line: number): number
  readonly taken?: number
  /** What has come of a row that is at fault or cut short; its error is thrown right after. */
  broken?(bytes: Buffer, start: number, end: number, line: number): void
}

export interface RowSplitter {
  /** Feeds bytes of any length; calls the sink for each whole row. After an error the splitter is unusable. */
  push(chunk: Buffer, sink: RowSink): void
  /** The data has ended: gives the last row, when its line end is missing. @throws 22P04 for an open quote or a cut row */
  finish(sink: RowSink): void
  /** Line of the row last read, as PostgreSQL would name it in CONTEXT. */
  readonly line: number
  /** True after `\.` or the binary trailer; what follows `\.` is ignored. */
  readonly ended: boolean
  /** Rows end in carriage returns alone. */
  readonly endsInReturn: boolean
  /** For errors that the caller finds in the row at hand: true when it has more columns than the table. */
  hasExtraColumns(bytes: Buffer, start: number, end: number): boolean
}

/** MaxAllocSize: the longest line that PostgreSQL holds. */
export const MAX_ROW_BYTES = 0x3fff_ffff

/** `COPY t, line 3` as PostgreSQL's CONTEXT. */
export function copyWhere(table: string, line: number, column?: string, value?: string): string {
  const place = `COPY ${table}, line ${line}`
  const where = column === undefined ? place : `${place}, column ${column}`
  return value === undefined ? where : `${where}: "${shorten(value)}"`
}

/** MAX_COPY_DATA_DISPLAY of copyfrom.c. */
const shorten = (value: string): string =>
  Buffer.byteLength(value) <= 100 ? value : `${value.slice(0, 100)}...`

export const noKey = (): RowKey => ({
  kind: 'none',
  bytes: Buffer.alloc(0),
  start: 0,
  end: 0,
  line: 0,
})
