/** A user that is not in users.toml and that the servers know. */

import { present } from '../../base/present.js'
import type { GeneralConfig, User } from '../loaded-config.js'

/** What an entry with nothing but a name and a database would give. */
export function bareUser(general: GeneralConfig, name: string, database: string): User {
  return present({
    name,
    databases: [database],
    passwords: [],
    authType: general.authType,
    clientCertificateRequired: general.tlsClientCaCertificate !== undefined,
    serverAuth: 'password' as const,
    vaultRefreshPercent: 80,
    replicationMode: false,
    schemaAdmin: false,
    crossShardDisabled: general.crossShardDisabled,
    crossShardWrites: general.crossShardWrites,
  })
}
