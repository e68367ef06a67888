/**
 * Line numbers of the keys of a TOML text, which the parser does not keep: path → line.
 * A scanner, not a parser: it assumes text that parses, and knows just enough of strings and brackets to skip values.
 *
 *   [a.b] · [[a]] · key = value · "quoted key" · a.b = value   →  "a.b.key", "a.0.key"
 */

export class TomlLines {
  readonly #lines = new Map<string, number>()

  constructor(text: string) {
    new Scanner(text, this.#lines).run()
  }

  /** Line of `path` (`databases.0.host`), or of the nearest table around it that has one. */
  of(path: readonly (string | number)[]): number | undefined {
    for (let length = path.length; length > 0; length--) {
      const line = this.#lines.get(path.slice(0, length).join('.'))
      if (line !== undefined) return line
    }
    return undefined
  }
}

class Scanner {
  readonly #text: string
  readonly #lines: Map<string, number>
  readonly #counts = new Map<string, number>()
  #at = 0
  #line = 1
  #table: string[] = []

  constructor(text: string, lines: Map<string, number>) {
    this.#text = text
    this.#lines = lines
  }

  run(): void {
    for (;;) {
      this.#skipBlank()
      const char = this.#text[this.#at]
      if (char === undefined) return
      if (char === '[') this.#header()
      else this.#assignment()
    }
  }

  #step(): void {
    if (this.#text[this.#at] === '\n') this.#line++
    this.#at++
  }

  #skipBlank(): void {
    for (;;) {
      const char = this.#text[this.#at]
      if (char === '#') this.#skipComment()
      else if (char !== undefined && /\s/.test(char)) this.#step()
      else return
    }
  }

  #skipComment(): void {
    while (this.#at < this.#text.length && this.#text[this.#at] !== '\n') this.#at++
  }

  #header(): void {
    const line = this.#line
    const list = this.#text.startsWith('[[', this.#at)
    this.#at += list ? 2 : 1
    const names = this.#key(']')
    this.#at += list ? 2 : 1
    this.#table = this.#resolve(names, list)
    this.#lines.set(this.#table.join('.'), line)
  }

  /** `sharded_tables.mapping` as `sharded_tables.1.mapping.0`: names of lists get the number of their last entry. */
  #resolve(names: string[], list: boolean): string[] {
    const path: string[] = []
    names.forEach((name, i) => {
      path.push(name)
      const place = path.join('.')
      const count = this.#counts.get(place)
      const last = i === names.length - 1
      if (last && list) {
        const next = (count ?? -1) + 1
        this.#counts.set(place, next)
        path.push(String(next))
      } else if (count !== undefined) path.push(String(count))
    })
    return path
  }

  #assignment(): void {
    const line = this.#line
    const names = this.#key('=')
    this.#at++
    const path = [...this.#table, ...names].join('.')
    if (!this.#lines.has(path)) this.#lines.set(path, line)
    this.#skipValue()
  }

  /** Dotted key up to `stop`, which is left in place. */
  #key(stop: string): string[] {
    const names: string[] = []
    let name = ''
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at] ?? ''
      if (char === stop || char === '\n') break
      if (char === '"' || char === "'") name += this.#quoted(char)
      else {
        if (char === '.') {
          names.push(name)
          name = ''
        } else if (!/\s/.test(char)) name += char
        this.#step()
      }
    }
    names.push(name)
    return names
  }

  #quoted(quote: string): string {
    const start = this.#at + 1
    this.#skipString(quote)
    return this.#text.slice(start, this.#at - 1)
  }

  /** Skips a string of one or three quotes; the position is at its first quote. */
  #skipString(quote: string): void {
    const triple = this.#text.startsWith(quote.repeat(3), this.#at)
    const end = triple ? quote.repeat(3) : quote
    this.#at += end.length
    while (this.#at < this.#text.length && !this.#text.startsWith(end, this.#at)) {
      if (quote === '"' && this.#text[this.#at] === '\\') this.#step()
      this.#step()
    }
    this.#at += end.length
    // """a"""" : up to two quotes may stand before the closing three.
    while (triple && this.#text[this.#at] === quote) this.#at++
  }

  #skipValue(): void {
    let depth = 0
    while (this.#at < this.#text.length) {
      const char = this.#text[this.#at] ?? ''
      if (char === '\n' && depth === 0) return
      if (char === '"' || char === "'") this.#skipString(char)
      else if (char === '#') this.#skipComment()
      else {
        depth += nesting[char] ?? 0
        this.#step()
      }
    }
  }
}

const nesting: Record<string, number> = { '[': 1, '{': 1, ']': -1, '}': -1 }
