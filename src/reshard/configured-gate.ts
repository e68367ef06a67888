/** The proxies of a configuration as one gate: consoles that are named, else the one of the file, and all that have registered. */
import type { Clock } from '../base/clock.js'
import { consoleOf, type MoveConfig, sideOf } from './configured-side.js'
import { ProxyFleet } from './cutover/proxy-fleet.js'

export interface GateRequest {
  /** The database as clients call it. */
  readonly from: string
  /** Consoles that are named; empty: as the configuration says. */
  readonly proxyUrls: readonly string[]
  /** False: no proxy is asked, and one that has registered all the same stops a cutover. */
  readonly proxy: boolean
  /** Proxies that have not been heard of for long stop a cutover too. */
  readonly isStrict?: boolean
}

/** @throws USAGE, RESHARD_UNKNOWN_DATABASE, RESHARD_NO_USER */
export function gateOf(config: MoveConfig, request: GateRequest, clock: Clock): ProxyFleet {
  const { from, proxyUrls, proxy } = request
  const serving = sideOf(config, from)
  const isStrict = request.isStrict ?? false
  if (!proxy) return new ProxyFleet({ consoles: [], login: undefined, serving, clock, isStrict })
  const urls = proxyUrls.length > 0 ? proxyUrls : [undefined]
  const consoles = urls.map((url) => consoleOf(config, url))
  const { user, password } = config.admin
  const login = {
    database: config.admin.names[0] ?? 'admin',
    user,
    ...(password === undefined ? {} : { password }),
  }
  return new ProxyFleet({ consoles, login, serving, clock, isStrict })
}
