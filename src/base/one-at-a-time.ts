/** Work that must not overlap: each begins when the one before it has ended, however that ended. */
export class OneAtATime {
  #last: Promise<unknown> = Promise.resolve()

  run<T>(work: () => Promise<T>): Promise<T> {
    const done = this.#last.then(work)
    this.#last = done.catch(() => undefined)
    return done
  }
}
