/**
 * The COPY blocks of a plain pg_dump file, one after the other as the data streams by. Other SQL is passed over: tables must be
 * there already. Inside a block only `\.` alone on a line is an end: pg_dump writes a backslash in data as two.
 */
import { engineError } from '../../errors/engine-error.js'

export interface DumpBlock {
  /** As the dump writes it, quoted where needed. */
  readonly table: string
  readonly columns: readonly string[]
  /** What the dump is written in; absent: what the servers take for granted. */
  readonly encoding?: string
  /** Its data in COPY's text format; to be read to its end before the next block. */
  readonly data: AsyncGenerator<Buffer>
}

const NEWLINE = 10
const END = Buffer.from('\\.\n')
const INNER_END = Buffer.from('\n\\.\n')

export class DumpReader {
  /** Lines that set sequences; they are passed over. */
  setvals = 0
  readonly #name: string
  readonly #chunks: AsyncIterator<Buffer>
  #encoding: string | undefined
  #blocks = 0
  /** What its comments say of it. */
  #isDump = false
  #isComplete = false
  #hasInserts = false
  #rest: Buffer = Buffer.alloc(0)
  #isInBlock = false

  constructor(name: string, chunks: AsyncGenerator<Buffer>) {
    this.#name = name
    this.#chunks = chunks
  }

  /** The next block, or undefined at the end of the file. @throws COPY_INPUT_BROKEN */
  async next(): Promise<DumpBlock | undefined> {
    if (this.#isInBlock) for await (const _ of this.#data());
    for (let line = await this.#line(); line !== undefined; line = await this.#line()) {
      const found = /^COPY (.+?) (?:\((.*)\))? ?FROM stdin;\r?$/.exec(line)
      if (found === null) {
        this.#look(line)
        continue
      }
      this.#isInBlock = true
      const [, table = '', columns] = found
      if (columns !== undefined) return this.#block(table, namesOf(columns))
      // A table without columns: its rows have no key, and COPY no list that says so.
      for await (const _ of this.#data())
        throw this.#broken(`table ${table} has rows and no columns`)
    }
    this.#checkEnd()
    return undefined
  }

  #block(table: string, columns: readonly string[]): DumpBlock {
    this.#blocks++
    const encoding = this.#encoding
    return { table, columns, data: this.#data(), ...(encoding === undefined ? {} : { encoding }) }
  }

  /** SQL that is passed over, but for what it says of the data. */
  #look(line: string): void {
    if (line.startsWith('SELECT pg_catalog.setval(')) this.setvals++
    else if (line.startsWith('INSERT INTO ')) this.#hasInserts = true
    else if (line.startsWith('-- PostgreSQL database dump'))
      if (line.includes('complete')) this.#isComplete = true
      else this.#isDump = true
    this.#encoding = /^SET client_encoding = '([^']+)';/.exec(line)?.[1] ?? this.#encoding
  }

  /** @throws COPY_INPUT_BROKEN when the file is not what it should be, or not all of it */
  #checkEnd(): void {
    if (this.#blocks === 0 && this.#hasInserts)
      throw this.#broken('it has INSERT statements; only COPY blocks are loaded')
    if (this.#blocks === 0 && !this.#isDump)
      throw this.#broken('it is no plain dump: there is no COPY block in it')
    if (this.#isDump && !this.#isComplete)
      throw this.#broken('it is cut short: "PostgreSQL database dump complete" is missing')
  }

  #broken(reason: string): Error {
    return engineError('COPY_INPUT_BROKEN', { name: this.#name, reason })
  }

  /** A line of SQL without its end. */
  async #line(): Promise<string | undefined> {
    for (;;) {
      const end = this.#rest.indexOf(NEWLINE)
      if (end >= 0) {
        const line = this.#rest.toString('utf8', 0, end)
        this.#rest = this.#rest.subarray(end + 1)
        return line
      }
      if (await this.#more()) continue
      const line = this.#rest.toString()
      this.#rest = Buffer.alloc(0)
      return line === '' ? undefined : line
    }
  }

  /** Whole lines up to the end of the block. */
  async *#data(): AsyncGenerator<Buffer> {
    while (this.#isInBlock) {
      const until = this.#endAt()
      if (until !== undefined) {
        const piece = this.#rest.subarray(0, until)
        this.#rest = this.#rest.subarray(until + END.length)
        this.#isInBlock = false
        if (until > 0) yield piece
        return
      }
      const whole = this.#rest.lastIndexOf(NEWLINE) + 1
      const piece = this.#rest.subarray(0, whole)
      this.#rest = this.#rest.subarray(whole)
      if (whole > 0) yield piece
      if (!(await this.#more())) throw this.#broken('it ends inside the data of a table')
    }
  }

  /** Where `\.` stands, when it has come. */
  #endAt(): number | undefined {
    if (this.#rest.subarray(0, END.length).equals(END)) return 0
    const inner = this.#rest.indexOf(INNER_END)
    return inner < 0 ? undefined : inner + 1
  }

  async #more(): Promise<boolean> {
    const next = await this.#chunks.next()
    if (next.done === true) return false
    this.#rest =
      this.#rest.length === 0 ? Buffer.from(next.value) : Buffer.concat([this.#rest, next.value])
    return true
  }
}

/** A list of names as SQL writes it: `id, "Name ""x"""`. */
function namesOf(list: string): string[] {
  const names: string[] = []
  for (const [, quoted, plain] of list.matchAll(/"((?:[^"]|"")*)"|([^",\s]+)/g))
    names.push(quoted === undefined ? (plain as string) : quoted.replaceAll('""', '"'))
  return names
}
