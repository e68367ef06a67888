/** The configuration in force and what was made of it; replaced whole by RELOAD. */
import type { UserTable } from '../auth/user-table.js'
import type { LoadedConfig, User } from '../config/loaded-config.js'
import { prepareTlsServer, type TlsServer } from '../net/tls-upgrade.js'
import type { DatabaseKnowledge } from './databases/knowledge.js'
import { readOrRefuse } from './databases/server-login.js'

export interface InForce {
  readonly config: LoadedConfig
  readonly users: UserTable<User>
  readonly knowledge: ReadonlyMap<string, DatabaseKnowledge>
  readonly tls: TlsServer | undefined
}

/** @throws FILE_MISSING, NET_TLS_MATERIAL */
export function tlsToClients({ general }: LoadedConfig): TlsServer | undefined {
  const { tlsCertificate, tlsPrivateKey, tlsClientCaCertificate } = general
  if (tlsCertificate === undefined || tlsPrivateKey === undefined) return undefined
  return prepareTlsServer({
    cert: readOrRefuse(tlsCertificate),
    key: readOrRefuse(tlsPrivateKey),
    minVersion: general.tlsMinVersion,
    timeoutMs: general.clientLoginTimeoutMs,
    ...(tlsClientCaCertificate === undefined ? {} : { ca: readOrRefuse(tlsClientCaCertificate) }),
  })
}
