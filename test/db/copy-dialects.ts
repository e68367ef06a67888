/** Random COPY dialects and data, valid and broken, from a seed. */

export interface CopyCase {
  readonly seed: number
  readonly options: Readonly<Record<string, string>>
  readonly forceNull: boolean
  readonly forceNotNull: boolean
  readonly keyIndex: number
  readonly keyType: 'text' | 'bigint'
  readonly data: Buffer
  readonly chunkBytes: number
}

/** mulberry32: the same cases on every machine. */
function makeRandom(seed: number): () => number {
  let state = seed >>> 0
  return () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

class CaseMaker {
  readonly #random: () => number
  readonly isCsv: boolean
  readonly delimiter: string
  readonly quote: string
  readonly escapedBy: string
  readonly nullMark: string

  constructor(seed: number) {
    this.#random = makeRandom(seed * 7919 + 13)
    this.isCsv = this.chance(0.6)
    const delimiters = this.isCsv ? ',,,;\t|\\x' : '\t\t|,;'
    this.delimiter = this.pick([...delimiters])
    this.quote = this.isCsv ? this.pick(['"', '"', '"', "'", 'q']) : '"'
    this.escapedBy = this.isCsv ? this.pick([this.quote, this.quote, '\\', 'e']) : '\\'
    const marks = this.isCsv ? ['', '', 'NULL', '\\N', 'n'] : ['\\N', '\\N', '', 'NULL']
    this.nullMark = this.pick(marks.filter((mark) => !mark.includes(this.delimiter)))
  }

  below(limit: number): number {
    return Math.floor(this.#random() * limit)
  }

  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)] as T
  }

  chance(share: number): boolean {
    return this.#random() < share
  }

  some(limit: number, items: readonly string[]): string {
    return Array.from({ length: this.below(limit) }, () => this.pick(items)).join('')
  }

  options(): Record<string, string> {
    const options: Record<string, string> = { format: this.isCsv ? 'csv' : 'text' }
    if (this.delimiter !== (this.isCsv ? ',' : '\t')) options['delimiter'] = this.delimiter
    if (this.isCsv && this.quote !== '"') options['quote'] = this.quote
    if (this.isCsv && this.escapedBy !== this.quote) options['escape'] = this.escapedBy
    if (this.nullMark !== (this.isCsv ? '' : '\\N')) options['null'] = this.nullMark
    if (this.chance(0.3)) options['header'] = this.pick(['true', 'true', 'match'])
    return options
  }

  /** What may break a line, a quote or an escape. */
  pieces(): string[] {
    const { delimiter, quote, escapedBy, nullMark } = this
    const own = [
      nullMark,
      delimiter,
      quote,
      quote + quote,
      escapedBy + quote,
      escapedBy,
      `\\${delimiter}`,
    ]
    return [
      ...own,
      ...'a bc 1 42 ä € . \\ \\\\ \\. \\N \\x41 \\102 \\t e q x'.split(' '),
      ' ',
      '\n',
      '\r',
      '\r\n',
    ]
  }

  quoted(): string {
    const inner = [...this.some(5, this.pieces())].map((character) =>
      character === this.quote || character === this.escapedBy
        ? this.escapedBy + character
        : character,
    )
    return this.quote + inner.join('') + this.quote
  }

  escaped(): string {
    const { delimiter } = this
    return this.some(5, [
      'a',
      '\\\\',
      '\\t',
      '\\n',
      '\\x4a',
      '\\7',
      `\\${delimiter}`,
      '\\q',
      'ä',
      '\\\n',
      '',
    ])
  }

  number(): string {
    const digits = this.pick(['1', '2', '42', '-7', ' 5 ', '+9', '007', '9223372036854775807'])
    return this.isCsv && this.chance(0.3) ? this.quote + digits + this.quote : digits
  }

  field(isNumber: boolean): string {
    if (isNumber) return this.chance(0.9) ? this.number() : this.nullMark
    if (this.chance(0.15)) return this.nullMark
    if (this.chance(0.4)) return this.isCsv ? this.quoted() : this.escaped()
    return this.some(4, ['a', 'bc', '7', ' ', 'ä', '.'])
  }

  row(numberIndex: number): string {
    const length = this.chance(0.97) ? 3 : this.pick([1, 2, 4])
    const fields = Array.from({ length }, (_, index) => this.field(index === numberIndex))
    return fields.join(this.delimiter)
  }

  /** `text` with up to three pieces where they do not belong. */
  broken(text: string): string {
    let result = text
    for (let count = this.chance(0.3) ? 1 + this.below(3) : 0; count > 0; count--) {
      const at = this.below(result.length + 1)
      result = result.slice(0, at) + this.pick(this.pieces()) + result.slice(at)
    }
    return result
  }

  ending(eol: string): string {
    if (!this.chance(0.1)) return ''
    return `\\.${this.pick([eol, '\n', '', 'x', '\r'])}${this.chance(0.5) ? 'rest' : ''}`
  }
}

/** The case of a seed. */
export function makeCopyCase(seed: number): CopyCase {
  const maker = new CaseMaker(seed)
  const options = maker.options()
  const keyIndex = maker.below(3)
  const keyType = maker.chance(0.7) ? ('text' as const) : ('bigint' as const)
  const eol = maker.pick(['\n', '\n', '\n', '\r\n', '\r'])
  const numberIndex = keyType === 'bigint' ? keyIndex : -1
  const rows = Array.from({ length: maker.below(7) }, () => maker.row(numberIndex))
  const names = ['a', 'b']
  names.splice(keyIndex, 0, 'id')
  if (options['header'] === 'match')
    rows.unshift(maker.chance(0.8) ? names.join(maker.delimiter) : 'id')
  else if (options['header'] !== undefined) rows.unshift(maker.field(false))
  const lineEnd = () => (maker.chance(0.98) ? eol : maker.pick(['\n', '\r', '\r\n']))
  let text = rows.map((row) => row + lineEnd()).join('') + maker.ending(eol)
  if (maker.chance(0.2)) text = text.slice(0, text.length - maker.below(3))
  return {
    seed,
    options,
    forceNull: maker.isCsv && maker.chance(0.2),
    forceNotNull: maker.isCsv && maker.chance(0.2),
    keyIndex,
    keyType,
    data: Buffer.from(maker.broken(text)),
    chunkBytes: maker.pick([1, 2, 3, 7, 64, 100_000]),
  }
}
