/** Catalogues and plans of databases that are about to change their shards, read ahead and looked over until they are used. */
import type { DatabaseKnowledge, Reading, ReadingAhead } from '../databases/knowledge.js'
import { type NextPlaces, newPlacesOf } from '../move-shards.js'

export class ReadyReadings {
  readonly #places: NextPlaces
  readonly #ahead = new Map<DatabaseKnowledge, ReadingAhead>()
  /** Sides that are left: fenced meanwhile, which their catalogues show, and read again behind the exchange anyway. */
  readonly #left: readonly string[]

  constructor(places: NextPlaces, left: readonly string[]) {
    this.#places = places
    this.#left = left
  }

  async read(moved: readonly DatabaseKnowledge[]): Promise<void> {
    for (const known of moved) {
      const places = newPlacesOf(known, this.#places)
      if (!places || this.#ahead.has(known)) continue
      this.#ahead.set(known, await known.readAhead(places.sharding, places.targets))
    }
  }

  /** Reads again what has changed since. */
  async refresh(): Promise<void> {
    for (const [known, ahead] of [...this.#ahead]) {
      if (this.#left.includes(known.name) || (await ahead.isCurrent().catch(() => false))) continue
      this.#ahead.delete(known)
      ahead.close()
      await this.read([known])
    }
  }

  /** What may be put in force now; what is missing has to be read. */
  async current(): Promise<Map<DatabaseKnowledge, Reading>> {
    const looks = [...this.#ahead].map(async ([known, ahead]) => {
      const isFit = this.#left.includes(known.name) || (await ahead.isCurrent().catch(() => false))
      return isFit ? ([[known, ahead.reading]] as const) : []
    })
    return new Map((await Promise.all(looks)).flat())
  }

  close(): void {
    for (const ahead of this.#ahead.values()) ahead.close()
    this.#ahead.clear()
  }
}
