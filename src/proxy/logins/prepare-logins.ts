/** What the first login of each user would else have to wait for. */
import { prepareScramKeys } from '../../auth/scram-server.js'
import { secretsOf } from '../../auth/user-table.js'
import type { LoadedConfig } from '../../config/loaded-config.js'

/** Half of what the cache of keys holds: the rest is for who comes by other ways. */
const MOST_USERS = 500

/** One after the other, off the main thread. */
export async function prepareLogins(
  { users, admin }: LoadedConfig,
  saltSecret: Buffer | undefined,
): Promise<void> {
  const all = users.map((user) => ({ user: user.name, secrets: secretsOf(user) }))
  if (admin.password !== undefined) all.unshift({ user: admin.user, secrets: [admin.password] })
  for (const one of all.slice(0, MOST_USERS)) {
    await prepareScramKeys(saltSecret === undefined ? one : { ...one, saltSecret })
  }
}
