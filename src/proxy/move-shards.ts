/** RELOAD of a database whose shards change: new plans are made ready, and nobody may hold a server while they are exchanged. */
import type { Clock } from '../base/clock.js'
import type { GeneralConfig, LoadedConfig } from '../config/loaded-config.js'
import { engineError } from '../errors/engine-error.js'
import type { PoolDefinition } from '../pool/definition.js'
import type { Pools } from '../pool/pool-map.js'
import type { DatabaseKnowledge, Reading } from './knowledge.js'

/** Readings of the new shards. @throws what opening and reading throw */
export async function prepareAll(
  moved: readonly DatabaseKnowledge[],
  config: LoadedConfig,
  definitions: readonly PoolDefinition[],
): Promise<Map<DatabaseKnowledge, Reading>> {
  const readings = new Map<DatabaseKnowledge, Reading>()
  for (const known of moved) {
    const sharding = config.sharding.get(known.name)
    const definition = definitions.find(({ database }) => database === known.name)
    if (!sharding || !definition) continue
    const targets = definition.shards[0]?.hosts.map(({ target }) => target) ?? []
    readings.set(known, await known.prepare(sharding, targets))
  }
  return readings
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
