/**
 * Keeps, for each server database, how its numbers of types and tables become those of shard 0, and gives every connection
 * that is opened there its holder. Read with the catalogue, again when the schema changes.
 */
import { type NumbersByName, numbersAt, readNumbers } from '../catalog/read-numbers.js'
import type { OpenServer } from '../pool/definition.js'
import type { UserPools } from '../pool/user-pools.js'
import type { ServerConnection } from '../server/server-connection.js'
import type { ServerTarget } from '../server/server-target.js'
import type { NumbersHolder } from '../server/shard-numbers.js'
import { withPrimary } from './ask-primary.js'

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

  /** Asks the primary of each shard. False: some could not be asked, and what was known of them stays. */
  async read(pools: UserPools, openServer: OpenServer): Promise<boolean> {
    const ask = (shard: number): Promise<NumbersByName | undefined> =>
      Promise.resolve(withPrimary(pools, shard, openServer, numbersOf)).catch(() => undefined)
    const [home, ...others] = await Promise.all(pools.shards.map((_, shard) => ask(shard)))
    if (!home) return false
    this.#note(pools, 0, undefined)
    for (const [index, own] of others.entries()) {
      if (own) this.#note(pools, index + 1, numbersAt(own, home))
    }
    return others.every((own) => own !== undefined)
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

const numbersOf = (server: ServerConnection): Promise<NumbersByName> =>
  readNumbers(async (sql) => (await server.query(sql)).at(-1)?.rows ?? [])
