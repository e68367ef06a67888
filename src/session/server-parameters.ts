/**
 * What clients are told of the server at login. Collected once for each set of settings, from a real server: values
 * and errors are PostgreSQL's own.
 */
import { type Settings, settingsDifference } from '../server/settings.js'
import type { DatabaseAccess } from './environment.js'

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

async function ask(
  access: DatabaseAccess,
  settings: Settings,
): Promise<ReadonlyMap<string, string>> {
  const checkout = await access.pools.checkout(0, 'primary')
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
