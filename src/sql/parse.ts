/**
 * PostgreSQL's own parser, compiled to WASM (libpg_query). The only file that knows the library.
 * Locations in its trees are offsets in UTF-8 bytes; `ParsedStatement.offsetOf` turns them into characters.
 */
import type { RawStmt } from 'libpg-query'
import { engineError } from '../errors/engine-error.js'

export type {
  A_Const,
  A_Expr,
  AlterTableCmd,
  AlterTableStmt,
  BoolExpr,
  ColumnDef,
  ColumnRef,
  CommonTableExpr,
  Constraint,
  CopyStmt,
  CreateDomainStmt,
  CreateFunctionStmt,
  CreateStmt,
  CreateTableAsStmt,
  DeclareCursorStmt,
  DefElem,
  DeleteStmt,
  FuncCall,
  IndexStmt,
  InsertStmt,
  JoinExpr,
  MergeStmt,
  Node,
  NullTest,
  RangeVar,
  SelectStmt,
  SubLink,
  TransactionStmt,
  TypeName,
  UpdateStmt,
  VariableSetStmt,
  ViewStmt,
} from 'libpg-query'

type Parser = typeof import('libpg-query')

let parser: Parser | undefined

/** Loads the parser (about 120 ms, 20 MB); later calls are free. */
export async function loadParser(): Promise<void> {
  if (parser) return
  const library = await import('libpg-query')
  await library.loadModule()
  parser = library
}

export interface SyntaxFault {
  readonly message: string
  /** 1-based character position, as PostgreSQL reports it. */
  readonly position: number
}

export interface ParsedText {
  readonly statements: readonly RawStmt[]
  /** Byte offset of the parser → character offset in the text. */
  offsetOf(byte: number): number
}

/** Longest text that is parsed; more would hold the event loop for too long. */
export const maxParsedLength = 1_000_000

function offsets(sql: string): (byte: number) => number {
  const length = Buffer.byteLength(sql)
  if (length === sql.length) return (byte) => byte
  const bytes = Buffer.from(sql)
  return (byte) => bytes.toString('utf8', 0, byte).length
}

interface ParserDetails {
  sqlDetails?: { message: string; cursorPosition: number }
}

/**
 * @throws STATEMENT_TOO_LONG, STATEMENT_TOO_COMPLEX
 * A text that PostgreSQL rejects gives its message and position instead.
 */
export function parseStatements(sql: string): ParsedText | SyntaxFault {
  if (!parser) throw engineError('INTERNAL', { message: 'the SQL parser is not loaded' })
  if (sql.length > maxParsedLength) {
    throw engineError('STATEMENT_TOO_LONG', { size: sql.length, limit: maxParsedLength })
  }
  const offsetOf = offsets(sql)
  try {
    return { statements: parser.parseSync(sql).stmts ?? [], offsetOf }
  } catch (error) {
    if (error instanceof RangeError)
      throw engineError('STATEMENT_TOO_COMPLEX', {}, { cause: error })
    const details = (error as ParserDetails).sqlDetails
    const message = details?.message ?? (error instanceof Error ? error.message : String(error))
    if (/stack depth|memory exhausted|nested too deep/i.test(message)) {
      throw engineError('STATEMENT_TOO_COMPLEX', {}, { cause: error })
    }
    const at = details?.cursorPosition ?? 0
    return { message, position: offsetOf(Math.max(at, 0)) + 1 }
  }
}

export function isSyntaxError(result: ParsedText | SyntaxFault): result is SyntaxFault {
  return 'message' in result
}
