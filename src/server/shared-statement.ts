/**
 * Prepared statements that many clients share: one name on the servers for one text and its parameter types,
 * whatever the clients call it. Forgotten when no client and no server holds it.
 */
import { backend } from '../wire/tags.js'
import type { Settings } from './settings.js'

/** One text with its parameter types; its name is the same on every server. */
export interface SharedStatement {
  readonly serverName: string
  readonly text: string
  /** OIDs given in Parse; 0 is left to the server. */
  readonly parameterTypes: readonly number[]
  /** `text` is a PREPARE, and `serverName` the name in it. */
  readonly isSql: boolean
  /** Settings by which its text was read. */
  readonly reading: Settings
  /** How often the schema had changed when it was made. */
  readonly epoch: number
  /** Its result columns as clients were told them first; undefined while nobody asked. */
  shape: string | undefined
  /** How often a client has parsed it. */
  uses: number
}

/** Names and types of a RowDescription (formats and origins aside) or NoData, to compare them. */
export function shapeOf(buffer: Buffer, start: number, end: number): string {
  if (buffer[start] !== backend.rowDescription) return ''
  const count = buffer.readUInt16BE(start + 5)
  const columns: string[] = []
  let at = start + 7
  for (let i = 0; i < count; i++) {
    const zero = Math.min(buffer.indexOf(0, at), end)
    const typeAt = zero + 7
    columns.push(
      `${buffer.toString('latin1', at, zero)}\0${buffer.toString('latin1', typeAt, typeAt + 10)}`,
    )
    at = zero + 19
  }
  return columns.join('\0')
}

export class StatementRegistry {
  readonly #known = new Map<string, WeakRef<SharedStatement>>()
  readonly #forgotten = new FinalizationRegistry<string>((key) => {
    if (!this.#known.get(key)?.deref()) this.#known.delete(key)
  })
  #count = 0
  #epoch = 0

  /** Grows when the schema may have changed. */
  get epoch(): number {
    return this.#epoch
  }

  get size(): number {
    return this.#known.size
  }

  /** Those that somebody holds. */
  *all(): Iterable<SharedStatement> {
    for (const known of this.#known.values()) {
      const statement = known.deref()
      if (statement) yield statement
    }
  }

  /** `reading`: see `readingOf`; `executes`: whose name the text speaks of. */
  find(
    text: string,
    parameterTypes: readonly number[],
    reading: Settings,
    executes?: SharedStatement,
  ): SharedStatement {
    let typed = parameterTypes.length === 0 ? text : `${parameterTypes.join(',')}\0${text}`
    if (executes) typed = `${executes.isSql}${executes.serverName}\0${executes.text}\0${typed}`
    const key =
      reading.values.size === 0 ? typed : `${JSON.stringify([...reading.values])}\0${typed}`
    return this.#shared(key, { text, parameterTypes, reading, isSql: false })
  }

  /** A statement that SQL has prepared: `text` is the PREPARE of `name`. */
  findSql(name: string, text: string, reading: Settings): SharedStatement {
    const key = `\0${JSON.stringify([...reading.values])}\0${text}`
    return this.#shared(key, { serverName: name, text, parameterTypes: [], reading, isSql: true })
  }

  #shared(
    key: string,
    facts: Pick<SharedStatement, 'text' | 'parameterTypes' | 'reading' | 'isSql'> & {
      serverName?: string
    },
  ): SharedStatement {
    const known = this.#known.get(key)?.deref()
    if (known) {
      known.uses++
      return known
    }
    const fresh: SharedStatement = {
      serverName: facts.serverName ?? `pgshard_${++this.#count}`,
      text: facts.text,
      parameterTypes: facts.parameterTypes,
      reading: facts.reading,
      isSql: facts.isSql,
      epoch: this.#epoch,
      shape: undefined,
      uses: 1,
    }
    this.#known.set(key, new WeakRef(fresh))
    this.#forgotten.register(fresh, key)
    return fresh
  }

  /** What is prepared from now on is not shared with what was prepared before: its result may be another. */
  schemaChanged(): void {
    this.#epoch++
    this.#known.clear()
  }
}

/** Statements that one server knows under clients' own names, by name; the one used least lately goes first. */
export class NamesOnServer {
  readonly #byName = new Map<string, SharedStatement>()
  readonly #limit: number

  constructor(limit: number) {
    this.#limit = limit
  }

  get(name: string): SharedStatement | undefined {
    const known = this.#byName.get(name)
    if (known) this.set(name, known)
    return known
  }

  set(name: string, statement: SharedStatement): void {
    this.#byName.delete(name)
    this.#byName.set(name, statement)
  }

  delete(name: string): void {
    this.#byName.delete(name)
  }

  clear(): void {
    this.#byName.clear()
  }

  /** Forgets one when there are as many as there may be; it is to be closed. */
  makeRoom(): string | undefined {
    if (this.#byName.size < this.#limit) return undefined
    const [oldest] = this.#byName.keys()
    if (oldest !== undefined) this.#byName.delete(oldest)
    return oldest
  }
}

/**
 * Which shared statements one server has prepared. Two generations instead of a list in order of use: a statement
 * used again moves to the young one; when that is full, what is left in the old one is closed.
 */
export class PreparedOnServer {
  #young = new Set<SharedStatement>()
  #old = new Set<SharedStatement>()
  readonly #halfLimit: number
  #epoch = 0

  /** `limit`: the most that stay prepared at once. */
  constructor(limit: number) {
    this.#halfLimit = Math.max(1, Math.floor(limit / 2))
  }

  get size(): number {
    return this.#young.size + this.#old.size
  }

  has(statement: SharedStatement): boolean {
    if (this.#young.has(statement)) return true
    if (!this.#old.has(statement)) return false
    if (this.#young.size < this.#halfLimit) {
      this.#old.delete(statement)
      this.#young.add(statement)
    }
    return true
  }

  /** Notes a confirmed ParseComplete; returns the statements that are now to be closed. */
  add(statement: SharedStatement): SharedStatement[] {
    let closing: SharedStatement[] = []
    if (statement.epoch > this.#epoch) {
      // clients prepare anew after a change of the schema, and nobody would ever close what they leave behind
      this.#epoch = statement.epoch
      closing = this.drain()
    } else if (this.#young.size >= this.#halfLimit) {
      closing = [...this.#old]
      this.#old = this.#young
      this.#young = new Set()
    }
    this.#young.add(statement)
    return closing
  }

  delete(statement: SharedStatement): void {
    this.#young.delete(statement)
    this.#old.delete(statement)
  }

  /** Of their texts. */
  get bytes(): number {
    return [...this.#young, ...this.#old].reduce((sum, { text }) => sum + text.length, 0)
  }

  /** Forgets all and returns them, to be closed. */
  drain(): SharedStatement[] {
    const all = [...this.#young, ...this.#old]
    this.clear()
    return all
  }

  clear(): void {
    this.#young.clear()
    this.#old.clear()
  }
}
