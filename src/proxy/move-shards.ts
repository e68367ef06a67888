/** RELOAD of a database whose shards change: new plans are made ready, and nobody may hold a server while they are exchanged. */
import type { Clock } from '../base/clock.js'
import type { GeneralConfig, LoadedConfig } from '../config/loaded-config.js'
import { engineError } from '../errors/engine-error.js'
import type { PoolDefinition } from '../pool/definition.js'
import type { Pools } from '../pool/pool-map.js'
import type { ServerTarget } from '../server/server-target.js'
import type { ShardingConfig } from '../sharding/sharded-table.js'
import { layoutOf, placesOf } from './databases/define-pools.js'
import type { DatabaseKnowledge, Reading } from './databases/knowledge.js'
import type { InForce } from './in-force.js'

/** What a database will be by a configuration that is not in force yet. */
export interface NextPlaces {
  readonly config: LoadedConfig
  readonly definitions: readonly PoolDefinition[]
}

/** How its rows will be placed, and who can be asked for the catalogue; undefined when nobody uses it. */
export function newPlacesOf(
  known: DatabaseKnowledge,
  { config, definitions }: NextPlaces,
): { sharding: ShardingConfig; targets: readonly ServerTarget[] } | undefined {
  const sharding = config.sharding.get(known.name)
  const definition = definitions.find(({ database }) => database === known.name)
  if (!sharding || !definition) return undefined
  return { sharding, targets: definition.shards[0]?.hosts.map(({ target }) => target) ?? [] }
}

/** Readings of the new shards; those that are `ready` are not read again. @throws what opening and reading throw */
export async function prepareAll(
  moved: readonly DatabaseKnowledge[],
  next: NextPlaces,
  ready: ReadonlyMap<DatabaseKnowledge, Reading> = new Map(),
): Promise<Map<DatabaseKnowledge, Reading>> {
  const readings = new Map<DatabaseKnowledge, Reading>()
  for (const known of moved) {
    const places = newPlacesOf(known, next)
    if (!places) continue
    const reading = ready.get(known) ?? (await known.prepare(places.sharding, places.targets))
    readings.set(known, reading)
  }
  return readings
}

/** Databases of before and after whose rows live elsewhere now. */
export const movedDatabases = (before: InForce, next: InForce): DatabaseKnowledge[] =>
  [...next.knowledge.values()].filter(
    (known) =>
      before.knowledge.get(known.name) === known &&
      layoutOf(before.config, known.name) !== layoutOf(next.config, known.name),
  )

/** What was known of databases that are gone, and of servers that others have taken over from. */
export function forgetBefore(before: InForce, next: InForce): void {
  for (const known of before.knowledge.values()) {
    const isMoved = placesOf(before.config, known.name) !== placesOf(next.config, known.name)
    if (next.knowledge.get(known.name) !== known) known.close()
    // Statements that were prepared there may have other columns here.
    else if (isMoved) known.statements.schemaChanged()
  }
}

/** Pauses the databases until all their servers are back; the result lets go of those that were not paused before. @throws PROXY_LAYOUT_BUSY */
export async function drainMoved(
  moved: readonly DatabaseKnowledge[],
  pools: Pools,
  clock: Clock,
  general: GeneralConfig,
): Promise<() => void> {
  const names = moved.map(({ name }) => name)
  const ours = names.filter((name) => !pools.isPaused(name))
  const resume = () => {
    for (const database of ours) pools.resume({ database })
  }
  const timeoutMs = general.checkoutTimeoutMs
  const waiting = new AbortController()
  const isDrained = await Promise.race([
    Promise.all(names.map((database) => pools.pause({ database }))).then(() => true),
    clock.sleep(timeoutMs, waiting.signal).then(() => false),
  ])
  waiting.abort()
  if (isDrained) return resume
  const busy = names.find((database) => lentOf(pools, database) > 0) ?? ''
  const count = lentOf(pools, busy)
  resume()
  throw engineError('PROXY_LAYOUT_BUSY', { database: busy, count, timeoutMs })
}

function lentOf(pools: Pools, database: string): number {
  let count = 0
  for (const { pool } of pools.all({ database })) count += pool.lent
  return count
}
