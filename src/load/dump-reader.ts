/**
 * The COPY blocks of a plain pg_dump file, one after the other as the data streams by. Other SQL is passed over: tables must be
 * there already. Inside a block only `\.` alone on a line is an end: pg_dump writes a backslash in data as two.
 */
import { engineError } from '../errors/engine-error.js'

export interface DumpBlock {
  /** As the dump writes it, quoted where needed. */
  readonly table: string
  /** Absent: a table without columns. */
  readonly columns: readonly string[]
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
      if (line.startsWith('SELECT pg_catalog.setval(')) this.setvals++
      const found = /^COPY (.+?) \((.*)\) FROM stdin;\r?$/.exec(line)
      if (found === null) continue
      this.#isInBlock = true
      return {
        table: found[1] as string,
        columns: namesOf(found[2] as string),
        data: this.#data(),
      }
    }
    return undefined
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
      if (!(await this.#more()))
        throw engineError('COPY_INPUT_BROKEN', {
          name: this.#name,
          reason: 'it ends inside the data of a table',
        })
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
