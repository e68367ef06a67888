/**
 * The memory that one socket reads into, and the rule by which it is reused.
 *
 * A chunk is lent for one call. When a write of that chunk is not taken by the kernel at once, Node keeps a
 * reference to it, so the reader leaves the memory to that write and reads on into other memory.
 *
 * Sockets of clients are many and mostly idle: their small reads go into one memory for all (the kernel fills it only
 * in the call that lends it), so that an idle one has none. What is written from there is copied first.
 */

export const SMALL_READ_BYTES = 8192
export const LARGE_READ_BYTES = 65_536
/** Small reads in a row after which a large buffer is given back. */
const SMALL_READS_TO_SHRINK = 4
/** Large buffers kept for the next socket that needs one: 2 MB. */
const SPARE_LIMIT = 32

const spares: Buffer[] = []

const shared: Buffer = Buffer.allocUnsafeSlow(SMALL_READ_BYTES)

/** Views of the shared memory by their length: most reads are of few lengths. */
const views: (Buffer | undefined)[] = []

const viewOf = (memory: Buffer, size: number): Buffer => {
  if (memory !== shared) return memory.subarray(0, size)
  let view = views[size]
  if (view === undefined) {
    view = shared.subarray(0, size)
    views[size] = view
  }
  return view
}

/** The chunk of a small read into the shared memory, which leaves its reader as it was; undefined for any other read. */
export const sharedChunk = (memory: Uint8Array, size: number): Buffer | undefined =>
  memory === shared && size < SMALL_READ_BYTES ? viewOf(shared, size) : undefined

/** True for bytes that the next read of any client overwrites: a write that may wait needs a copy. */
export const isShared = (chunk: Buffer): boolean => chunk.buffer === shared.buffer

/** The reader whose chunk is lent at this moment; reads are synchronous and do not nest. */
let lending: ReadBuffer | undefined

const takeLarge = (): Buffer => spares.pop() ?? Buffer.allocUnsafeSlow(LARGE_READ_BYTES)

export class ReadBuffer {
  #memory: Buffer
  readonly #shares: boolean
  #held = false
  #large = false
  #smallReads = 0
  #size = 0

  /** With `shares` small reads go into the memory that all such readers share. */
  constructor(options: { shares?: boolean } = {}) {
    this.#shares = options.shares ?? false
    this.#memory = this.#small()
  }

  #small(): Buffer {
    return this.#shares ? shared : Buffer.allocUnsafeSlow(SMALL_READ_BYTES)
  }

  /** Lends the first `size` bytes to `use` for the length of the call. */
  lend(size: number, memory: Buffer, use: (chunk: Buffer) => void): void {
    this.#size = size
    const outer = lending
    lending = this
    try {
      use(viewOf(memory, size))
    } finally {
      lending = outer
    }
  }

  /** The memory for the next read; call it once after each `lend`, and once at the start. */
  next(): Buffer {
    const filled = this.#size === this.#memory.length
    this.#smallReads = this.#size <= SMALL_READ_BYTES && !filled ? this.#smallReads + 1 : 0
    const patience = this.#shares ? 1 : SMALL_READS_TO_SHRINK
    const large = this.#large ? this.#smallReads < patience : filled
    if (!this.#held && large === this.#large) return this.#memory
    if (this.#large && !this.#held && spares.length < SPARE_LIMIT) spares.push(this.#memory)
    this.#memory = large ? takeLarge() : this.#small()
    this.#large = large
    this.#held = false
    return this.#memory
  }

  /** Bytes of the memory in use; for tests and figures. */
  get capacity(): number {
    return this.#memory.length
  }

  /** @see noteHeld */
  hold(memory: ArrayBufferLike): void {
    if (memory === this.#memory.buffer && memory !== shared.buffer) this.#held = true
  }
}

/** Says that a write still refers to `chunk`: when it is lent memory, its reader will not reuse it. */
export function noteHeld(chunk: Buffer): void {
  lending?.hold(chunk.buffer)
}
