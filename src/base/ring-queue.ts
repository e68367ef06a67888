/** First in, first out, without shifting an array; grows by doubling. An empty one has no slots: most stay empty. */
export class RingQueue<T> {
  #slots: (T | undefined)[] = []
  #head = 0
  #size = 0

  get size(): number {
    return this.#size
  }

  push(item: T): void {
    if (this.#size === this.#slots.length) this.#grow()
    this.#slots[(this.#head + this.#size) & (this.#slots.length - 1)] = item
    this.#size++
  }

  peek(): T | undefined {
    return this.#size === 0 ? undefined : this.#slots[this.#head]
  }

  /** The item at `index` from the head; undefined past the end. */
  at(index: number): T | undefined {
    return index < this.#size
      ? this.#slots[(this.#head + index) & (this.#slots.length - 1)]
      : undefined
  }

  shift(): T | undefined {
    if (this.#size === 0) return undefined
    const item = this.#slots[this.#head]
    this.#slots[this.#head] = undefined
    this.#head = (this.#head + 1) & (this.#slots.length - 1)
    this.#size--
    return item
  }

  clear(): void {
    this.#slots = []
    this.#head = 0
    this.#size = 0
  }

  *[Symbol.iterator](): Iterator<T> {
    for (let i = 0; i < this.#size; i++) yield this.at(i) as T
  }

  #grow(): void {
    const bigger: (T | undefined)[] = new Array(this.#slots.length * 2 || 16)
    for (let i = 0; i < this.#size; i++) bigger[i] = this.at(i)
    this.#slots = bigger
    this.#head = 0
  }
}
