/** Random COPY dialects and data, valid and broken, from a seed: text, csv and binary, for each major version of PostgreSQL. */
import { makeBinaryData } from './copy-binary-data.js'
import { makeChoices, type Random } from './copy-random.js'

type ServerMajor = 15 | 16 | 17 | 18

export interface CopyCase {
  readonly seed: number
  /** As SQL writes them behind COPY … FROM STDIN. */
  readonly options: Readonly<Record<string, string>>
  /** Columns, or * from version 17 on. */
  readonly forceNull: readonly string[]
  readonly forceNotNull: readonly string[]
  /** Of the table `id, a, b`, in the order of the data. */
  readonly columns: readonly string[]
  readonly isListed: boolean
  readonly keyType: 'text' | 'bigint'
  /** Type of `b`. */
  readonly otherType: 'text' | 'int'
  readonly data: Buffer
  readonly chunkBytes: number
}

const ORDERS = [
  ['id', 'a', 'b'],
  ['id', 'a', 'b'],
  ['a', 'id', 'b'],
  ['a', 'b', 'id'],
  ['b', 'id'],
  ['id'],
]

/** What no version takes, or only some do. */
const ODD_OPTIONS: readonly (readonly [string, string])[] = [
  ['default', 'DFLT'],
  ['on_error', 'stop'],
  ['on_error', 'ignore'],
  ['on_error', 'ignore'],
  ['log_verbosity', 'verbose'],
  ['header', 'maybe'],
  ['delimiter', 'ab'],
  ['null', 'a\nb'],
  ['bogus', '1'],
  ['freeze', 'false'],
]

class CaseMaker {
  readonly random: Random
  readonly isCsv: boolean
  readonly delimiter: string
  readonly quote: string
  readonly escapedBy: string
  readonly nullMark: string
  readonly encoding: string | undefined
  defaultMark: string | undefined

  constructor(random: Random) {
    this.random = random
    this.isCsv = random.chance(0.6)
    const delimiters = this.isCsv ? ',,,;\t|\\x' : '\t\t|,;'
    this.delimiter = random.pick([...delimiters])
    this.quote = this.isCsv ? random.pick(['"', '"', '"', "'", 'q']) : '"'
    this.escapedBy = this.isCsv ? random.pick([this.quote, this.quote, '\\', 'e']) : '\\'
    const marks = this.isCsv ? ['', '', 'NULL', '\\N', 'n'] : ['\\N', '\\N', '', 'NULL']
    this.nullMark = random.pick(marks.filter((mark) => !mark.includes(this.delimiter)))
    this.encoding = random.chance(0.08) ? random.pick(['latin1', 'WIN1252', 'utf-8']) : undefined
  }

  options(major: ServerMajor): Record<string, string> {
    const { random } = this
    const options = this.marks()
    if (random.chance(0.3)) options['header'] = random.pick(['true', 'true', 'match'])
    if (major >= 16 && random.chance(0.1)) this.defaultMark = options['default'] = '\\D'
    if (major >= 17 && random.chance(0.1)) options['on_error'] = 'ignore'
    if (random.chance(0.03)) {
      const [name, value] = random.pick(ODD_OPTIONS)
      options[name] = value
    }
    return options
  }

  /** What differs from the defaults of the format. */
  marks(): Record<string, string> {
    const options: Record<string, string> = { format: this.isCsv ? 'csv' : 'text' }
    if (this.delimiter !== (this.isCsv ? ',' : '\t')) options['delimiter'] = this.delimiter
    if (this.isCsv && this.quote !== '"') options['quote'] = this.quote
    if (this.isCsv && this.escapedBy !== this.quote) options['escape'] = this.escapedBy
    if (this.nullMark !== (this.isCsv ? '' : '\\N')) options['null'] = this.nullMark
    if (this.encoding !== undefined) options['encoding'] = this.encoding
    return options
  }

  /** What may break a line, a quote or an escape. */
  pieces(): string[] {
    const { delimiter, quote, escapedBy, nullMark } = this
    const own = [nullMark, delimiter, quote, quote + quote, escapedBy + quote, escapedBy]
    return [
      ...own,
      `\\${delimiter}`,
      ...'a bc 1 42 ä € . \\ \\\\ \\. \\N \\D \\x41 \\102 \\t e q x'.split(' '),
      ' ',
      '\n',
      '\r',
      '\r\n',
    ]
  }

  quoted(): string {
    const inner = [...this.random.some(5, this.pieces())].map((character) =>
      character === this.quote || character === this.escapedBy
        ? this.escapedBy + character
        : character,
    )
    return this.quote + inner.join('') + this.quote
  }

  escaped(): string {
    const { delimiter } = this
    return this.random.some(5, [
      ...['a', '\\\\', '\\t', '\\n', '\\x4a', '\\7', `\\${delimiter}`, '\\q', 'ä', '\\\n', ''],
    ])
  }

  number(): string {
    const { random } = this
    const digits = random.pick(['1', '2', '42', '-7', ' 5 ', '+9', '007', '2147483647', '5000000'])
    const odd = random.chance(0.03) ? random.pick(['x', '', '99999999999999999999', '1.5']) : digits
    return this.isCsv && random.chance(0.3) ? this.quote + odd + this.quote : odd
  }

  field(isNumber: boolean): string {
    const { random } = this
    if (this.defaultMark !== undefined && random.chance(0.1)) return this.defaultMark
    if (isNumber) return random.chance(0.9) ? this.number() : this.nullMark
    if (random.chance(0.15)) return this.nullMark
    if (random.chance(0.4)) return this.isCsv ? this.quoted() : this.escaped()
    return random.some(4, ['a', 'bc', '7', ' ', 'ä', '.'])
  }

  row(isNumber: readonly boolean[]): string {
    const { random } = this
    const length = random.chance(0.97) ? isNumber.length : random.pick([1, 2, 4])
    const fields = Array.from({ length }, (_, index) => this.field(isNumber[index] === true))
    return fields.join(this.delimiter)
  }

  /** `text` with up to three pieces where they do not belong. */
  broken(text: string): string {
    const { random } = this
    let result = text
    for (let count = random.chance(0.3) ? 1 + random.below(3) : 0; count > 0; count--) {
      const at = random.below(result.length + 1)
      result = result.slice(0, at) + random.pick(this.pieces()) + result.slice(at)
    }
    return result
  }

  ending(eol: string): string {
    const { random } = this
    if (!random.chance(0.1)) return ''
    return `\\.${random.pick([eol, '\n', '', 'x', '\r'])}${random.chance(0.5) ? 'rest' : ''}`
  }

  /** In the encoding of the case; now and then with bytes that UTF-8 does not have. */
  bytes(text: string): Buffer {
    const isLatin = this.encoding === 'latin1' || this.encoding === 'WIN1252'
    const bytes = isLatin ? Buffer.from(text.replaceAll('€', 'é'), 'latin1') : Buffer.from(text)
    if (bytes.length === 0 || !this.random.chance(0.03)) return bytes
    bytes[this.random.below(bytes.length)] = this.random.pick([0xff, 0xe2, 0xc3, 0x80, 0])
    return bytes
  }
}

/** The case of a seed, for servers of a major version. */
export function makeCopyCase(seed: number, major: ServerMajor): CopyCase {
  const random = makeChoices(seed * 7919 + 13)
  const columns = random.pick(ORDERS)
  const keyType = random.chance(0.6) ? ('text' as const) : ('bigint' as const)
  const otherType = random.chance(0.7) ? ('text' as const) : ('int' as const)
  const isListed = columns.length < 3 || columns[0] !== 'id' || random.chance(0.5)
  const common = { seed, columns, keyType, otherType, isListed }
  const typeOf = (column: string) =>
    column === 'id' ? keyType : column === 'b' ? otherType : ('text' as const)
  if (random.chance(0.15)) {
    return {
      ...common,
      options: { format: 'binary' },
      forceNull: [],
      forceNotNull: [],
      data: makeBinaryData(random, columns.map(typeOf)),
      chunkBytes: random.pick([1, 3, 7, 64, 100_000]),
    }
  }
  const maker = new CaseMaker(random)
  const options = maker.options(major)
  const eol = random.pick(['\n', '\n', '\n', '\r\n', '\r'])
  const isNumber = columns.map((column) => typeOf(column) !== 'text')
  const rows = Array.from({ length: random.below(7) }, () => maker.row(isNumber))
  if (options['header'] === 'match')
    rows.unshift(random.chance(0.8) ? columns.join(maker.delimiter) : 'id')
  else if (options['header'] !== undefined) rows.unshift(maker.field(false))
  const lineEnd = () => (random.chance(0.98) ? eol : random.pick(['\n', '\r', '\r\n']))
  let text = rows.map((row) => row + lineEnd()).join('') + maker.ending(eol)
  if (random.chance(0.2)) text = text.slice(0, text.length - random.below(3))
  const forced = (share: number) => {
    if (!maker.isCsv || !random.chance(share)) return []
    return major >= 17 && random.chance(0.3) ? ['*'] : columns.filter(() => random.chance(0.7))
  }
  return {
    ...common,
    options,
    forceNull: forced(0.25),
    forceNotNull: forced(0.25),
    data: maker.bytes(maker.broken(text)),
    chunkBytes: random.pick([1, 2, 3, 7, 64, 100_000]),
  }
}

/** The COPY statement of a case. */
export function copySqlOf(table: string, one: CopyCase): string {
  const literal = (text: string) => `'${text.replaceAll("'", "''")}'`
  const written = Object.entries(one.options).map(([name, value]) =>
    /^(format|header|on_error|log_verbosity|freeze)$/.test(name)
      ? `${name} ${value}`
      : `${name} ${literal(value)}`,
  )
  const list = (names: readonly string[]) => (names[0] === '*' ? '*' : `(${names.join(', ')})`)
  if (one.forceNull.length > 0) written.push(`force_null ${list(one.forceNull)}`)
  if (one.forceNotNull.length > 0) written.push(`force_not_null ${list(one.forceNotNull)}`)
  const columns = one.isListed ? ` (${one.columns.join(', ')})` : ''
  return `copy ${table}${columns} from stdin (${written.join(', ')})`
}
