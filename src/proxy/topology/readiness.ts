/**
 * What will take over from a database within moments, made ready while its clients go on: the cutover holds them
 * only for the exchange itself. Kept while the cutover is announced, looked over at each beat.
 */
import type { Log } from '../../base/log.js'
import type { LoadedConfig } from '../../config/loaded-config.js'
import { toEngineError } from '../../errors/engine-error.js'
import { heirOf, type TopologyRow } from '../../topology/epoch.js'
import { exchangeDatabases } from './exchange-databases.js'

/** Made ready for one exchange. */
export interface ReadyExchange {
  /** All that can be done ahead has been done. */
  readonly isComplete: boolean
  /** Looks whether what was read is still so. */
  refresh(): Promise<void>
  /** Gives back what the exchange did not take. */
  close(): void
}

interface ReadinessOptions<E extends ReadyExchange> {
  readonly log: Log
  /** Makes `config`, in which another database serves as `name`, ready to be put in force. */
  readonly make: (name: string, config: LoadedConfig) => Promise<E>
}

interface Entry<E> {
  readonly heir: string
  /** In force when it was made. */
  readonly base: LoadedConfig
  exchange: E | undefined
  isBusy: boolean
  isDropped: boolean
}

export class Readiness<E extends ReadyExchange> {
  readonly #options: ReadinessOptions<E>
  readonly #entries = new Map<string, Entry<E>>()

  constructor(options: ReadinessOptions<E>) {
    this.#options = options
  }

  isReady(name: string): boolean {
    return this.#entries.get(name)?.exchange?.isComplete ?? false
  }

  /** After a look at a database: `row` is its own. `readAll` is asked only when a cutover is announced. */
  async look(
    name: string,
    row: TopologyRow,
    base: LoadedConfig,
    readAll: () => Promise<ReadonlyMap<string, TopologyRow>>,
  ): Promise<void> {
    const heir = row.active && row.isPreparing ? heirOf(name, row, await readAll()) : undefined
    // A database that was just left keeps what is ready until the exchange.
    if (heir === undefined) {
      if (row.active) this.drop(name)
      return
    }
    const known = this.#entries.get(name)
    if (known?.heir === heir && known.base === base) return this.#refresh(known)
    this.drop(name)
    const entry: Entry<E> = { heir, base, exchange: undefined, isBusy: true, isDropped: false }
    this.#entries.set(name, entry)
    await this.#make(name, entry)
  }

  /** What is ready for this exchange; the caller closes it. */
  take(name: string, base: LoadedConfig, heir: string): E | undefined {
    const entry = this.#entries.get(name)
    if (!entry || entry.base !== base || entry.heir !== heir) return undefined
    const { exchange } = entry
    this.#entries.delete(name)
    entry.isDropped = true
    return exchange
  }

  drop(name: string): void {
    const entry = this.#entries.get(name)
    if (!entry) return
    this.#entries.delete(name)
    entry.isDropped = true
    entry.exchange?.close()
  }

  close(): void {
    for (const name of [...this.#entries.keys()]) this.drop(name)
  }

  async #make(name: string, entry: Entry<E>): Promise<void> {
    const { make, log } = this.#options
    try {
      const exchange = await make(name, exchangeDatabases(entry.base, name, entry.heir))
      if (entry.isDropped) exchange.close()
      else entry.exchange = exchange
    } catch (error) {
      // The exchange itself will do it all, and say why when it cannot.
      const facts = { database: name, reason: toEngineError(error).message }
      log.warn('the side that is to take over could not be made ready', facts)
      if (!entry.isDropped) this.drop(name)
    } finally {
      entry.isBusy = false
    }
  }

  async #refresh(entry: Entry<E>): Promise<void> {
    if (entry.isBusy || !entry.exchange) return
    entry.isBusy = true
    await entry.exchange.refresh().catch(() => undefined)
    entry.isBusy = false
  }
}
