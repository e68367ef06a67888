/** Failures of a load in batches: where in the file, and what of it is committed already. */
import { catalogue } from '../errors/catalogue.js'
import { EngineError, toEngineError } from '../errors/engine-error.js'
import { type Framing, serverLine } from './batch-shard.js'
import type { RowStore } from './row-store.js'

/** A shard's error with file and line instead of what the server counted. */
export function placeByStore(
  error: unknown,
  store: RowStore,
  framing: Framing,
  names: { readonly table: string; readonly file: string },
): EngineError {
  const known = toEngineError(error)
  const line = serverLine(known)
  const row = line === undefined ? undefined : store.rowAt(0, line, framing.countLines)
  const place =
    row === undefined
      ? `file "${names.file}"`
      : `COPY ${names.table}, line ${store.lineOf(row)} of file "${names.file}"`
  return withPlace(known, place)
}

/** Our own error, with its file. */
export function placeInFile(error: unknown, file: string, linesBefore: number): EngineError {
  const known = toEngineError(error)
  if (known.where === undefined || known.code === 'INTERRUPTED') return known
  const where = known.where.replace(
    /, line (\d+)/,
    (_, line: string) => `, line ${Number(line) + linesBefore}`,
  )
  return withPlace(known, `${where}\nfile "${file}"`)
}

function withPlace(error: EngineError, where: string): EngineError {
  return rebuild(error, error.exitCode, { where })
}

/** What the failure of a load means for its exit code and what is to be done. */
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
