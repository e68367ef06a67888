/**
 * Cuts a script into SQL commands and backslash commands, as psql's scanner does: a semicolon ends a command outside
 * quotes, comments, parentheses and BEGIN … END of a function body; `\;` does not. Source followed: psqlscan.l, exprscan.l.
 */

export type ScriptPiece =
  | { readonly kind: 'sql'; readonly text: string; readonly line: number }
  | {
      readonly kind: 'meta'
      /** Without the backslash. */
      readonly name: string
      /** What follows the name, continuation lines included. */
      readonly rest: string
      /** The whole command as written. */
      readonly text: string
      readonly line: number
    }

/** Tokens that matter; the rest is passed on byte by byte. */
const patterns = {
  whitespace: /(?:\s|--[^\n]*)+/y,
  identifier: /[A-Za-z_\u0080-\u{10ffff}][A-Za-z0-9_$\u0080-\u{10ffff}]*/uy,
  number: /\d[\dA-Za-z_.$]*/y,
  plainQuote: /'(?:[^']|'')*(?:'|$)/y,
  escapeQuote: /'(?:[^'\\]|''|\\[\s\S])*(?:'(?:\s*\n\s*'(?:[^'\\]|''|\\[\s\S])*')*|$)/y,
  quotedName: /"(?:[^"]|"")*(?:"|$)/y,
  dollar: /\$(?:[A-Za-z_\u0080-\u{10ffff}][A-Za-z0-9_\u0080-\u{10ffff}]*)?\$/uy,
}

class ScriptLexer {
  readonly #script: string
  #at = 0
  #sql = ''
  #depth = 0
  #beginDepth = 0
  /** First words of the statement, as far as they tell CREATE FUNCTION or PROCEDURE. */
  #words: string[] = []
  readonly #pieces: ScriptPiece[] = []

  constructor(script: string) {
    this.#script = script
  }

  run(): ScriptPiece[] {
    while (this.#at < this.#script.length) this.#step()
    this.#endSql()
    return this.#pieces
  }

  #match(pattern: RegExp): string | undefined {
    pattern.lastIndex = this.#at
    return pattern.exec(this.#script)?.[0]
  }

  #take(text: string): void {
    this.#sql += text
    this.#at += text.length
  }

  #step(): void {
    const char = this.#script[this.#at] as string
    if (char === '\\') this.#backslash()
    else if (char === ';') this.#semicolon()
    else if (!this.#space()) {
      if (char === '(') this.#depth++
      if (char === ')' && this.#depth > 0) this.#depth--
      this.#take(this.#token(char))
    }
  }

  /** Nothing is kept of space and "--" comments before a command. */
  #space(): boolean {
    const space = this.#match(patterns.whitespace)
    if (space === undefined) return false
    if (this.#sql === '') this.#at += space.length
    else this.#take(space)
    return true
  }

  #token(char: string): string {
    if (char === "'") return this.#match(patterns.plainQuote) as string
    if (char === '"') return this.#match(patterns.quotedName) as string
    if (char === '$') return this.#dollarQuote()
    if (this.#script.startsWith('/*', this.#at)) return this.#blockComment()
    const number = this.#match(patterns.number)
    if (number !== undefined) return number
    const word = this.#match(patterns.identifier)
    return word === undefined ? char : this.#word(word)
  }

  #word(word: string): string {
    const lower = word.toLowerCase()
    if (lower === 'e' && this.#script[this.#at + 1] === "'") {
      patterns.escapeQuote.lastIndex = this.#at + 1
      return word + (patterns.escapeQuote.exec(this.#script)?.[0] ?? '')
    }
    this.#trackBody(lower)
    return word
  }

  /** BEGIN … END inside CREATE FUNCTION or PROCEDURE hides its semicolons. */
  #trackBody(word: string): void {
    if (this.#words.length < 4) this.#words.push(word)
    const kind = this.#words[1] === 'or' ? this.#words[3] : this.#words[1]
    const isRoutine = this.#words[0] === 'create' && (kind === 'function' || kind === 'procedure')
    if (!isRoutine || this.#depth > 0) return
    if (word === 'begin') this.#beginDepth++
    else if (word === 'case' && this.#beginDepth > 0) this.#beginDepth++
    else if (word === 'end' && this.#beginDepth > 0) this.#beginDepth--
  }

  #dollarQuote(): string {
    const tag = this.#match(patterns.dollar)
    if (tag === undefined) return '$'
    const end = this.#script.indexOf(tag, this.#at + tag.length)
    return this.#script.slice(this.#at, end < 0 ? undefined : end + tag.length)
  }

  #blockComment(): string {
    const pattern = /\/\*|\*\//g
    pattern.lastIndex = this.#at
    let depth = 0
    for (
      let found = pattern.exec(this.#script);
      found !== null;
      found = pattern.exec(this.#script)
    ) {
      depth += found[0] === '/*' ? 1 : -1
      if (depth === 0) return this.#script.slice(this.#at, pattern.lastIndex)
    }
    return this.#script.slice(this.#at)
  }

  #semicolon(): void {
    this.#take(';')
    if (this.#depth === 0 && this.#beginDepth === 0) this.#endSql()
  }

  #backslash(): void {
    const next = this.#script[this.#at + 1]
    if (next === ';' || next === ':') {
      this.#sql += next
      this.#at += 2
      return
    }
    this.#endSql()
    const start = this.#at
    const command = this.#match(/\\(?:[^\n\\]|\\\r?\n|\\(?!\r?\n))*/y) ?? '\\'
    this.#at += command.length
    const parts = /^\\\s*(\S*)([\s\S]*)$/.exec(command)
    const name = parts?.[1] ?? ''
    const line = this.#lineOf(start)
    if (name === '') return
    this.#pieces.push({ kind: 'meta', name, rest: parts?.[2] ?? '', text: command.trimEnd(), line })
  }

  #lineOf(offset: number): number {
    return this.#script.slice(0, offset).split('\n').length
  }

  #endSql(): void {
    const text = this.#sql
    this.#sql = ''
    this.#depth = 0
    this.#beginDepth = 0
    this.#words = []
    if (text.trim() === '') return
    this.#pieces.push({ kind: 'sql', text, line: this.#lineOf(this.#at - text.length) })
  }
}

export const cutScript = (script: string): ScriptPiece[] => new ScriptLexer(script).run()
