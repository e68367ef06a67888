/**
 * Keeps, for each server database, how its numbers of types and tables become those of shard 0, and gives every connection
 * that is opened there its holder. Read with the catalogue, again when the schema changes.
 */
import type { Query } from '../../catalog/read-catalog.js'
import {
  differencesOf,
  type Habit,
  readHabits,
  type ShardDifference,
} from '../../catalog/read-habits.js'
import { type NumbersByName, numbersAt, readNumbers } from '../../catalog/read-numbers.js'
import type { OpenServer } from '../../pool/definition.js'
import type { UserPools } from '../../pool/user-pools.js'
import type { ServerConnection } from '../../server/server-connection.js'
import type { ServerTarget } from '../../server/server-target.js'
import type { NumbersHolder } from '../../server/shard-numbers.js'
import { withPrimary } from './ask-primary.js'

interface Told {
  readonly numbers: NumbersByName
  readonly habits: readonly Habit[]
}

export interface ShardsCompared {
  /** False: not all of them could be asked. */
  readonly isComplete: boolean
  readonly differences: readonly ShardDifference[]
}

export class HomeNumbers {
  readonly #holders = new Map<string, NumbersHolder>()

  /** `openServer` whose connections know their numbers. */
  opening(openServer: OpenServer): OpenServer {
    return async (target, options) => {
      const server = await openServer(target, options)
      server.numbers = this.#holderOf(target)
      return server
    }
  }

  /** Asks the primary of each shard. What was known of those that cannot be asked stays. */
  async read(pools: UserPools, openServer: OpenServer): Promise<ShardsCompared> {
    const ask = (shard: number): Promise<Told | undefined> =>
      Promise.resolve(withPrimary(pools, shard, openServer, tellsOf)).catch(() => undefined)
    const [home, ...others] = await Promise.all(pools.shards.map((_, shard) => ask(shard)))
    if (!home) return { isComplete: false, differences: [] }
    this.#note(pools, 0, undefined)
    const differences: ShardDifference[] = []
    for (const [index, own] of others.entries()) {
      if (!own) continue
      this.#note(pools, index + 1, numbersAt(own.numbers, home.numbers))
      differences.push(...differencesOf(index + 1, own.habits, home.habits))
    }
    return { isComplete: others.every((own) => own !== undefined), differences }
  }

  #note(pools: UserPools, shard: number, numbers: NumbersHolder['current']): void {
    const differs = numbers !== undefined && numbers.types.size + numbers.tables.size > 0
    for (const { host } of pools.shards[shard] ?? [])
      this.#holderOf(host.target).current = differs ? numbers : undefined
  }

  #holderOf({ host, port, database }: ServerTarget): NumbersHolder {
    const key = JSON.stringify([host, port, database])
    const known = this.#holders.get(key) ?? {}
    this.#holders.set(key, known)
    return known
  }
}

async function tellsOf(server: ServerConnection): Promise<Told> {
  const query: Query = async (sql) => (await server.query(sql)).at(-1)?.rows ?? []
  return { numbers: await readNumbers(query), habits: await readHabits(query) }
}
