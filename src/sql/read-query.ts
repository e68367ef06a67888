/**
 * A query string → its statements with their facts, through three levels: the template map, then PostgreSQL's parser.
 * (The raw-text map above them stands in routing/, which keeps plans.) Both maps have two generations: when the young one
 * is full it becomes the old one, and what is used again moves back; no hit pays for an eviction.
 */
import { describeStatement } from './describe-statement.js'
import { type CommentHints, readHints } from './hint.js'
import { isSyntaxError, type ParsedText, parseStatements, type SyntaxFault } from './parse.js'
import type { Statement } from './statement.js'
import { makeTemplate, type Piece, type Slots, splitStatements } from './template.js'
import type { TextSource } from './utility.js'

/** One statement of a text: its template and where its literals stand. */
export interface ReadStatement {
  readonly template: TemplateEntry
  readonly start: number
  readonly end: number
  readonly slots: Slots
}

/** What all texts of a template share. */
export interface TemplateEntry {
  readonly statement: Statement
  readonly hints: CommentHints | undefined
  /** For the planner: what it worked out for the template. A field, because a WeakMap costs ten times as much. */
  worked: unknown
}

export interface ReadQuery {
  readonly statements: readonly ReadStatement[]
  readonly syntaxError?: { readonly message: string; readonly position: number }
}

export class TwoGenerations<V> {
  #young = new Map<string, V>()
  #old = new Map<string, V>()
  readonly #limit: number

  /** Most entries of both generations together. */
  constructor(limit: number) {
    this.#limit = Math.max(1, Math.floor(limit / 2))
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  get(key: string): V | undefined {
    const young = this.#young.get(key)
    if (young !== undefined) return young
    const old = this.#old.get(key)
    if (old !== undefined) this.set(key, old)
    return old
  }

  *entries(): Iterable<[string, V]> {
    yield* this.#old
    yield* this.#young
  }

  set(key: string, value: V): void {
    if (this.#young.size >= this.#limit) {
      this.#old = this.#young
      this.#young = new Map()
    }
    this.#young.set(key, value)
  }
}

const noSlots: Slots = { starts: [], ends: [] }

/** Longest template that is kept: large multi-row INSERTs would fill memory and come once. */
const maxKeptLength = 32_768

const slotFinder = (starts: readonly number[], source: TextSource) => ({
  slotAt(location: number | undefined): number {
    const at = source.at(location)
    let low = 0
    let high = starts.length
    while (low < high) {
      const middle = (low + high) >> 1
      if (starts[middle]! < at) low = middle + 1
      else high = middle
    }
    // A sign stands before its literal and takes its place in the tree.
    return low < starts.length && isSignTo(source.sql, at, starts[low]!) ? low : -1
  },
})

const isSignTo = (sql: string, from: number, to: number): boolean => {
  for (let at = from; at < to; at++) if (!'+- \t\n\r\f\v'.includes(sql[at]!)) return false
  return true
}

interface PieceText {
  readonly sql: string
  readonly piece: Piece
}

function sourceOf({ sql, piece }: PieceText, parsed: ParsedText): TextSource {
  return {
    sql,
    start: piece.start,
    end: piece.end,
    at: (location) => piece.start + parsed.offsetOf(location ?? 0),
  }
}

export class QueryReader {
  readonly #standard: boolean
  readonly #templates: TwoGenerations<TemplateEntry>

  /** `standard` is standard_conforming_strings of the client. */
  constructor(options: { standard?: boolean; templates?: number } = {}) {
    this.#standard = options.standard ?? true
    this.#templates = new TwoGenerations(options.templates ?? 5000)
  }

  /** Templates that are kept, by their texts. */
  kept(): Iterable<[string, TemplateEntry]> {
    return this.#templates.entries()
  }

  /** @throws STATEMENT_TOO_LONG, STATEMENT_TOO_COMPLEX */
  read(sql: string): ReadQuery {
    const pieces = splitStatements(sql, this.#standard)
    if (!pieces) return this.#whole(sql)
    if (pieces.length === 1) {
      const only = this.#readPiece(sql, pieces[0]!)
      return 'message' in only ? this.#whole(sql) : { statements: [only] }
    }
    const statements: ReadStatement[] = []
    for (const piece of pieces) {
      // The scan's tokens are overwritten by nobody: parsing does not scan.
      const read = this.#readPiece(sql, piece)
      if ('message' in read) return this.#whole(sql)
      statements.push(read)
    }
    return { statements }
  }

  #readPiece(sql: string, piece: Piece): ReadStatement | SyntaxFault {
    const template = makeTemplate(sql, piece.start, piece.end, piece.firstToken, piece.lastToken)
    let entry = this.#templates.get(template.key)
    if (!entry) {
      const made = this.#describe(sql, piece, template.starts)
      if ('message' in made) return made
      entry = made
      const keep = !entry.statement.dependsOnLiterals && template.key.length <= maxKeptLength
      if (keep) this.#templates.set(template.key, entry)
    }
    return { template: entry, start: piece.start, end: piece.end, slots: template }
  }

  #describe(sql: string, piece: Piece, starts: readonly number[]): TemplateEntry | SyntaxFault {
    const parsed = parseStatements(sql.slice(piece.start, piece.end))
    if (isSyntaxError(parsed)) return parsed
    const raw = parsed.statements[0]
    if (!raw?.stmt || parsed.statements.length !== 1) {
      return { message: 'statement cannot be told apart from its neighbours', position: 1 }
    }
    const source = sourceOf({ sql, piece }, parsed)
    return {
      statement: describeStatement(raw.stmt, source, slotFinder(starts, source), piece.firstToken),
      hints: readHints(sql, piece.firstToken, piece.lastToken),
      worked: undefined,
    }
  }

  /** The parser's own cut of a text that ours did not fit: its error, or its statements without templates. */
  #whole(sql: string): ReadQuery {
    const parsed = parseStatements(sql)
    if (isSyntaxError(parsed)) return { statements: [], syntaxError: parsed }
    const statements = parsed.statements.flatMap((raw): ReadStatement[] => {
      if (!raw.stmt) return []
      const start = parsed.offsetOf(raw.stmt_location ?? 0)
      const length = raw.stmt_len ?? Buffer.byteLength(sql) - (raw.stmt_location ?? 0)
      const end = parsed.offsetOf((raw.stmt_location ?? 0) + length)
      const source: TextSource = { sql, start, end, at: (at) => parsed.offsetOf(at ?? 0) }
      const statement = describeStatement(raw.stmt, source, { slotAt: () => -1 }, 0)
      const template = { statement, hints: undefined, worked: undefined }
      return [{ template, start, end, slots: noSlots }]
    })
    return { statements }
  }
}
