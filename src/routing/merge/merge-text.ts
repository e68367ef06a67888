/** The text that shards are sent in a merge: the client's own characters, with pieces put in at its tokens. */
import { type StatementTokens, tokensWithin } from '../../sql/clause-tokens.js'
import { scanTokens } from '../../sql/lexer.js'
import type { SelectFacts, Span } from '../../sql/select.js'
import type { Run } from '../key-value.js'

/** Text of ours, or a copy of the client's. */
export type Piece = string | Span

export interface TextEdits {
  /** Behind the last output column. */
  readonly columns: readonly Piece[]
  /** Behind the last key of ORDER BY, or where the clause would stand. */
  readonly order: readonly Piece[]
  /** They stand for the client's own ORDER BY. */
  readonly replacesOrder: boolean
}

class EditedText {
  readonly #run: Run
  readonly #tokens: StatementTokens
  #text = ''
  #at: number

  constructor(run: Run, tokens: StatementTokens) {
    this.#run = run
    this.#tokens = tokens
    this.#at = run.start
  }

  /** Puts pieces behind the token before `token`. */
  put(token: number, pieces: readonly Piece[]): void {
    if (pieces.length === 0) return
    this.#copyTo(Math.max(this.#at, this.#tokens.ends[token - 1]!))
    for (const piece of pieces) this.#text += typeof piece === 'string' ? piece : this.#slice(piece)
  }

  /** Leaves tokens of the client's out. */
  replace(span: Span, text: string): void {
    this.#copyTo(this.#tokens.starts[span.first]!)
    this.#text += text
    this.#at = this.#tokens.ends[span.last - 1]!
  }

  finish(): string {
    this.#copyTo(this.#run.end)
    return this.#text
  }

  #slice({ first, last }: Span): string {
    if (last <= first) return ''
    return this.#run.sql.slice(this.#tokens.starts[first], this.#tokens.ends[last - 1])
  }

  #copyTo(offset: number): void {
    this.#text += this.#run.sql.slice(this.#at, offset)
    this.#at = offset
  }
}

/** `limits`: what stands for LIMIT and OFFSET. Undefined when the text's tokens are not those of its template. */
export function editedText(
  run: Run,
  select: SelectFacts,
  edits: TextEdits,
  limits: string,
): string | undefined {
  if (!scanTokens(run.sql, run.standard)) return undefined
  const tokens = tokensWithin(run.start, run.end)
  if (tokens.kinds.length !== select.count) return undefined
  const text = new EditedText(run, tokens)
  text.put(select.targetsEnd, edits.columns)
  if (edits.replacesOrder && select.sortSpan) text.replace(select.sortSpan, '')
  text.put(select.sortEnd, edits.order)
  if (select.limitSpan) text.replace(select.limitSpan, limits)
  else if (limits !== '') text.put(select.sortEnd, [` ${limits}`])
  return text.finish()
}
