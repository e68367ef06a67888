/**
 * What clients are told of the server at login. Collected once for each set of settings, from a real server: values
 * and errors are PostgreSQL's own.
 */
import { isEngineError } from '../../errors/engine-error.js'
import type { ServerCheckout } from '../../pool/shard-pools.js'
import { type Settings, settingsDifference } from '../../server/settings.js'
import type { DatabaseAccess } from '../environment.js'

type Known = Map<Settings, Promise<ReadonlyMap<string, string>>>

const known = new WeakMap<object, Known>()

/** ParameterStatus values of a server with `settings`. @throws the server's error when it refuses one of them, and those of the pool */
export function serverParameters(
  access: DatabaseAccess,
  settings: Settings,
): Promise<ReadonlyMap<string, string>> {
  let ofPools = known.get(access.pools)
  if (!ofPools) {
    ofPools = new Map()
    known.set(access.pools, ofPools)
  }
  const found = ofPools.get(settings)
  if (found) return found
  if (ofPools.size >= 1000) ofPools.clear() // only speed is lost
  const asked = ask(access, settings)
  ofPools.set(settings, asked)
  asked.catch(() => ofPools.delete(settings))
  return asked
}

/** The first shard that can be reached: those that are known to be down come last. */
async function ask(
  access: DatabaseAccess,
  settings: Settings,
): Promise<ReadonlyMap<string, string>> {
  const { pools } = access
  const shards = Array.from({ length: pools.shardCount }, (_, shard) => shard)
  const order = [
    ...shards.filter((shard) => pools.isUp(shard)),
    ...shards.filter((shard) => !pools.isUp(shard)),
  ]
  let failure: unknown
  for (const shard of order) {
    try {
      return await parametersOf(await pools.checkout(shard, 'primary'), settings)
    } catch (error) {
      failure ??= error
      if (!isUnreachable(error)) break
    }
  }
  throw failure
}

const isUnreachable = (error: unknown): boolean =>
  isEngineError(error) && error.code.startsWith('POOL_CONNECT')

async function parametersOf(
  checkout: ServerCheckout,
  settings: Settings,
): Promise<ReadonlyMap<string, string>> {
  const server = checkout.resource
  const sql = settingsDifference(server.settings, settings)
  try {
    if (sql !== '') await server.query(sql)
    server.settings = settings
    const parameters = new Map(server.parameters)
    checkout.release()
    return parameters
  } catch (error) {
    checkout.discard('settings of a login were refused')
    throw error
  }
}
