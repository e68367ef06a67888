/**
 * Addresses of host names, kept for `dns_ttl` and then looked up again in the background as long as somebody asks:
 * opening a connection never waits for a name that was known before. Knows no sockets.
 */
import type { Clock, Timer } from '../base/clock.js'

export type Resolve = (host: string) => Promise<readonly string[]>

interface Known {
  addresses: Promise<readonly string[]>
  /** The last good answer; undefined while there was none. */
  text: string | undefined
  wasUsed: boolean
  timer?: Timer
}

export interface NameCacheOptions {
  readonly clock: Clock
  readonly resolve: Resolve
  /** Read at each look-up: RELOAD may change it. */
  ttlMs(): number
}

export class NameCache {
  /** Called when a name has other addresses than before. */
  onChange: ((host: string) => void) | undefined
  readonly #options: NameCacheOptions
  readonly #known = new Map<string, Known>()

  constructor(options: NameCacheOptions) {
    this.#options = options
  }

  /** Rejects only when the name has never been known, or not since nobody asked for it. */
  readonly lookup = (host: string): Promise<readonly string[]> => {
    const known = this.#known.get(host)
    if (known) {
      known.wasUsed = true
      return known.addresses
    }
    const addresses = this.#options.resolve(host)
    const fresh: Known = { addresses, text: undefined, wasUsed: false }
    this.#known.set(host, fresh)
    addresses.then(
      (found) => {
        fresh.text = textOf(found)
        this.#refreshLater(host, fresh)
      },
      () => this.#known.delete(host),
    )
    return addresses
  };

  /** What is kept now. */
  *all(): Iterable<{ name: string; addresses: string[]; ttlMs: number }> {
    const ttlMs = this.#options.ttlMs()
    for (const [name, { text }] of this.#known)
      yield { name, addresses: text === undefined ? [] : text.split(' '), ttlMs }
  }

  close(): void {
    for (const { timer } of this.#known.values()) timer?.cancel()
    this.#known.clear()
  }

  #refreshLater(host: string, known: Known): void {
    const { clock, ttlMs } = this.#options
    known.timer = clock.after(ttlMs(), () => {
      if (!known.wasUsed) this.#known.delete(host)
      else void this.#refresh(host, known)
    })
  }

  async #refresh(host: string, known: Known): Promise<void> {
    known.wasUsed = false
    try {
      const found = await this.#options.resolve(host)
      if (this.#known.get(host) !== known) return
      const before = known.text
      known.addresses = Promise.resolve(found)
      known.text = textOf(found)
      if (known.text !== before) this.onChange?.(host)
    } catch {
      // A name service that is away takes no address from us: the old one is tried until there is a new one.
      known.wasUsed = true
    }
    this.#refreshLater(host, known)
  }
}

/** Name services give the same addresses in turning order. */
const textOf = (addresses: readonly string[]): string => [...addresses].sort().join(' ')
