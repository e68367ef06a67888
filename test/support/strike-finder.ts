/** Which byte of a conversation is struck: counts messages and bytes of one direction for the spoiler. */
export type Direction = 'to-server' | 'to-client'
/** close: FIN · reset: RST · hang: bytes are swallowed and both sides stay open. */
export type Fault = 'close' | 'reset' | 'hang'

export interface Rule {
  direction: Direction
  fault: Fault
  /** After so many bytes of a connection; a part of a message may have passed. */
  afterBytes?: number
  /** At the nth (from 1) message with this tag; the startup packet is tag 'startup'. Any tag when absent. */
  atMessage?: { tag?: string; nth?: number }
  /** Where in the message the cut is: before it (the default), after its header, or behind it. */
  where?: 'before' | 'inside' | 'after'
  /** Only the nth connection (from 0) since the rule was set. */
  connection?: number
}

/** Positions of message starts in one direction of a conversation. */
export class MessageCounter {
  readonly #seen = new Map<string, number>()
  readonly #untagged: boolean
  #buffer = Buffer.alloc(0)
  #skip = 0

  constructor(direction: Direction) {
    this.#untagged = direction === 'to-server'
    this.inStartup = this.#untagged
  }

  inStartup: boolean
  /** Single bytes that answer an SSLRequest or GSSENCRequest and come without a length. */
  expectedAnswers = 0

  /** Calls `visit` for every message that begins in `chunk`, with its offset in it and its length. */
  feed(chunk: Buffer, visit: (tag: string, nth: number, offset: number, length: number) => void) {
    const base = this.#buffer.length
    const bytes = base === 0 ? chunk : Buffer.concat([this.#buffer, chunk])
    let at = Math.min(this.#skip, bytes.length)
    this.#skip -= at
    while (at < bytes.length) {
      const head = this.#head(bytes, at)
      if (head === undefined) break
      const nth = (this.#seen.get(head.tag) ?? 0) + 1
      this.#seen.set(head.tag, nth)
      visit(head.tag, nth, at - base, head.length)
      const end = at + head.length
      this.#skip = Math.max(0, end - bytes.length)
      at = Math.min(end, bytes.length)
    }
    this.#buffer = Buffer.from(bytes.subarray(at))
  }

  #head(bytes: Buffer, at: number): { tag: string; length: number } | undefined {
    if (this.expectedAnswers > 0) {
      this.expectedAnswers--
      return { tag: 'answer', length: 1 }
    }
    const headerBytes = this.inStartup ? 8 : 5
    if (bytes.length - at < headerBytes) return undefined
    if (!this.inStartup)
      return { tag: String.fromCharCode(bytes[at]!), length: bytes.readUInt32BE(at + 1) + 1 }
    const code = bytes.readUInt32BE(at + 4)
    const isRequest = code === 80877103 || code === 80877104 // SSLRequest, GSSENCRequest
    if (!isRequest) this.inStartup = false
    return { tag: isRequest ? 'encryption-request' : 'startup', length: bytes.readUInt32BE(at) }
  }
}

/** Offset in `chunk` at which a rule strikes, or undefined. */
function strikeOffset(
  rule: Rule,
  before: number,
  chunk: Buffer,
  messages: Found[],
): number | undefined {
  if (rule.afterBytes !== undefined) {
    const offset = rule.afterBytes - before
    return offset < chunk.length ? Math.max(offset, 0) : undefined
  }
  const { tag, nth = 1 } = rule.atMessage ?? {}
  const hit = messages.find(
    (found) =>
      (tag === undefined ? found.index : found.nth) === nth && (tag ?? found.tag) === found.tag,
  )
  if (!hit) return undefined
  const shift = { before: 0, inside: Math.min(5, hit.length - 1), after: hit.length }
  return Math.max(0, hit.offset + shift[rule.where ?? 'before'])
}

interface Found {
  tag: string
  nth: number
  index: number
  offset: number
  length: number
}

export interface Strike {
  /** Bytes of this chunk that still pass. */
  passing: number
  rule: Rule
}

/** Watches one direction of one connection and says when a rule strikes. */
export class StrikeFinder {
  readonly #rules: readonly Rule[]
  readonly #counter: MessageCounter
  readonly #onEncryptionRequest: () => void
  #passed = 0
  #messages = 0
  /** A strike whose place lies in a later chunk, and how many bytes are left until there. */
  #pending: { rule: Rule; bytes: number } | undefined

  constructor(rules: readonly Rule[], counter: MessageCounter, onEncryptionRequest: () => void) {
    this.#rules = rules
    this.#counter = counter
    this.#onEncryptionRequest = onEncryptionRequest
  }

  feed(chunk: Buffer): Strike | undefined {
    const found: Found[] = []
    this.#counter.feed(chunk, (tag, nth, offset, length) => {
      found.push({ tag, nth, index: ++this.#messages, offset, length })
      if (tag === 'encryption-request') this.#onEncryptionRequest()
    })
    const before = this.#passed
    this.#passed += chunk.length
    this.#pending ??= this.#nextStrike(before, chunk, found)
    if (!this.#pending) return undefined
    const { rule, bytes } = this.#pending
    if (bytes <= chunk.length) return { passing: bytes, rule }
    this.#pending.bytes -= chunk.length
    return undefined
  }

  #nextStrike(before: number, chunk: Buffer, found: Found[]) {
    for (const rule of this.#rules) {
      const bytes = strikeOffset(rule, before, chunk, found)
      if (bytes !== undefined) return { rule, bytes }
    }
    return undefined
  }
}
