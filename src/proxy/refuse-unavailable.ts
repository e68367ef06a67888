/** Settings whose effect the proxy does not have yet and whose absence would not be noticed: refused, never ignored. */
import type { LoadedConfig } from '../config/loaded-config.js'
import { engineError } from '../errors/engine-error.js'

/** @throws PROXY_NOT_YET */
export function refuseUnavailable(config: LoadedConfig): void {
  const { users } = config
  const unavailable: readonly (readonly [boolean, string])[] = [
    ...users.map(
      (user) => [user.serverAuth !== 'password', `server_auth = "${user.serverAuth}"`] as const,
    ),
  ]
  for (const [isWanted, what] of unavailable) {
    if (isWanted) throw engineError('PROXY_NOT_YET', { what })
  }
}
