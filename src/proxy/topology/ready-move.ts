/** What the exchange of two databases needs, made while clients go on: catalogues read, plans made, servers opened. */
import type { Pools } from '../../pool/pool-map.js'
import type { DatabaseKnowledge, Reading } from '../databases/knowledge.js'
import type { NextPlaces } from '../move-shards.js'
import type { ReadyExchange } from './readiness.js'
import { ReadyReadings } from './ready-readings.js'

interface ReadyParts extends NextPlaces {
  readonly moved: readonly DatabaseKnowledge[]
  readonly pools: Pools
}

export class ReadyMove implements ReadyExchange {
  readonly #readings: ReadyReadings
  readonly #pools: Pools

  private constructor(readings: ReadyReadings, pools: Pools) {
    this.#readings = readings
    this.#pools = pools
  }

  /** `name` is what clients call the database. @throws what opening and reading throw */
  static async make(name: string, parts: ReadyParts): Promise<ReadyMove> {
    const { config, definitions, moved, pools } = parts
    const places = { config, definitions }
    const left = moved.filter((known) => known.name !== name).map((known) => known.name)
    const readings = new ReadyReadings(places, left)
    pools.openAhead(definitions.filter(({ database }) => database === name))
    try {
      await readings.read(moved)
    } catch (error) {
      readings.close()
      pools.closeAhead()
      throw error
    }
    return new ReadyMove(readings, pools)
  }

  get isComplete(): boolean {
    return this.#pools.isAheadOpen
  }

  readings(): Promise<ReadonlyMap<DatabaseKnowledge, Reading>> {
    return this.#readings.current()
  }

  async refresh(): Promise<void> {
    this.#pools.tendAhead()
    await this.#readings.refresh()
  }

  close(): void {
    this.#readings.close()
    this.#pools.closeAhead()
  }
}
