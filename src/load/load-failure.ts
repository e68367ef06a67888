/** Failures of a load: where in its own file, and what of it is committed already. */
import { contextLine } from '../copy/line-map.js'
import { catalogue } from '../errors/catalogue.js'
import { EngineError, toEngineError } from '../errors/engine-error.js'

/** The line that a server's CONTEXT names: of the rows that it got. */
export function serverLine(error: EngineError): number | undefined {
  const { where } = (error.cause ?? {}) as { where?: string }
  return contextLine(where)
}

/** The first record, whose value is the name of its column, is a header that nobody announced. */
const HEADER_VALUE = /, line 1, column ([^:]+): "([^"]*)"/

function headerHint(where: string | undefined): { hint: string } | undefined {
  const [, column, value] = HEADER_VALUE.exec(where ?? '') ?? []
  if (column === undefined || column !== value?.trim().toLowerCase()) return undefined
  return { hint: 'the first line names the columns: give --header' }
}

/** A shard's error with file and line instead of what the server counted. */
export function placeServerError(
  error: EngineError,
  names: { readonly table: string; readonly file: string },
  line: number | undefined,
): EngineError {
  const file = `file "${names.file}"`
  const where = line === undefined ? file : `COPY ${names.table}, line ${line} of ${file}`
  const said = (error.cause ?? {}) as { where?: string }
  return rebuild(error, error.exitCode, { where, ...(line === 1 ? headerHint(said.where) : {}) })
}

/** Our own error, with its file. `linesBefore`: of the file, before what was read. */
export function placeOwnError(error: EngineError, file: string, linesBefore = 0): EngineError {
  if (error.where === undefined || error.code === 'INTERRUPTED') return error
  const where = error.where.replace(
    /, line (\d+)/,
    (_, line: string) => `, line ${Number(line) + linesBefore}`,
  )
  return rebuild(error, error.exitCode, {
    where: `${where}\nfile "${file}"`,
    ...headerHint(where),
  })
}

/** A failure before the first commit: exit code 5, nothing has changed. */
export function nothingChanged(error: unknown): EngineError {
  const known = toEngineError(error)
  const isData = known.code === 'SERVER_ERROR' || known.where !== undefined
  return isData && known.code !== 'INTERRUPTED' ? rebuild(known, 5, {}) : known
}

/** What the failure of a load in batches means for its exit code and what is to be done. */
export function endingOf(error: unknown, committedRows: number, table: string): EngineError {
  const known = toEngineError(error)
  if (committedRows === 0) {
    const isWrong = known.code === 'SERVER_ERROR' || known.exitCode === 6
    return isWrong ? rebuild(known, 5, {}) : known
  }
  const detail = `${known.detail === undefined ? '' : `${known.detail}\n`}${committedRows} rows are committed in "${table}"`
  const isInterrupt = known.code === 'INTERRUPTED'
  return rebuild(known, isInterrupt ? known.exitCode : 6, {
    detail,
    hint: 'what is committed stays; the same command with --resume goes on behind it',
  })
}

/** A failure among the tables of a dump, which cannot be resumed. */
export function dumpEnding(error: unknown, done: readonly string[]): EngineError {
  const known = toEngineError(error)
  if (done.length === 0 && known.exitCode !== 6) return known
  const complete = done.length === 0 ? '' : `complete: ${done.join(', ')}`
  return rebuild(known, known.code === 'INTERRUPTED' ? known.exitCode : 6, {
    detail: [known.detail, complete].filter(Boolean).join('\n'),
    hint: 'a dump is not resumed: empty the tables and the checkpoints of the load, and load it again',
  })
}

function rebuild(
  error: EngineError,
  exit: number,
  change: { where?: string; detail?: string; hint?: string },
): EngineError {
  const where = change.where ?? error.where
  const detail = change.detail ?? error.detail
  const hint = change.hint ?? error.hint
  return new EngineError(
    error.code,
    error.message,
    { ...catalogue[error.code], sqlstate: error.sqlstate, exit },
    {
      cause: error.cause ?? error,
      ...(where === undefined ? {} : { where }),
      ...(detail === undefined ? {} : { detail }),
      ...(hint === undefined ? {} : { hint }),
    },
  )
}
