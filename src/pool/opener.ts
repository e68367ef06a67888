/** Opens resources one at a time (D165), and after a failure waits longer and longer before it tries unasked. */
import type { Clock } from '../base/clock.js'

const RETRY_MS = 333
const MAX_RETRY_MS = 10_000

export interface OpenerOptions<T> {
  readonly clock: Clock
  open(signal: AbortSignal): Promise<T>
  onOpened(resource: T): void
  onFailed(error: unknown): void
}

export class Opener<T> {
  readonly #options: OpenerOptions<T>
  #controller: AbortController | undefined
  #failuresInRow = 0
  #retryAtMs = 0

  constructor(options: OpenerOptions<T>) {
    this.#options = options
  }

  get isOpening(): boolean {
    return this.#controller !== undefined
  }

  /** False for a while after a failure. */
  get mayTry(): boolean {
    return this.#options.clock.monotonicMs() >= this.#retryAtMs
  }

  abort(): void {
    this.#controller?.abort()
  }

  /** Does nothing while one is being opened. */
  start(): void {
    if (!this.#controller) void this.#run(new AbortController())
  }

  async #run(controller: AbortController): Promise<void> {
    this.#controller = controller
    let resource: T
    try {
      resource = await this.#options.open(controller.signal)
    } catch (error) {
      this.#controller = undefined
      const delayMs = Math.min(RETRY_MS * 2 ** Math.min(this.#failuresInRow++, 10), MAX_RETRY_MS)
      this.#retryAtMs = this.#options.clock.monotonicMs() + delayMs
      this.#options.onFailed(error)
      return
    }
    this.#controller = undefined
    this.#failuresInRow = 0
    this.#retryAtMs = 0
    this.#options.onOpened(resource)
  }
}
