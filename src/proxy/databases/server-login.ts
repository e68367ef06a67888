/** As whom, and how protected, the proxy logs in to a server. Reads certificate files; opens no connection. */
import { readFileSync } from 'node:fs'
import { systemClock } from '../../base/clock.js'
import { present } from '../../base/present.js'
import type { GeneralConfig, LoadedConfig, User } from '../../config/loaded-config.js'
import { engineError } from '../../errors/engine-error.js'
import { checkTlsClient } from '../../net/tls-upgrade.js'
import { azureProvider } from '../../server/credentials/azure-identity.js'
import {
  type CredentialProvider,
  keepCredentials,
} from '../../server/credentials/kept-credentials.js'
import { rdsProvider } from '../../server/credentials/rds-iam.js'
import { type VaultPlace, vaultProvider } from '../../server/credentials/vault.js'
import type { CredentialSource, ServerTarget } from '../../server/server-target.js'
import type { LoginProof } from '../../session/login/login-rules.js'
import type { Host } from '../../topology/topology.js'

/** TLS and channel binding for one host. */
export type ProtectionOf = (host: Host) => Pick<ServerTarget, 'tls' | 'channelBinding'>

/** User and secret for one host. */
export type LoginOf = (
  host: Host,
  user: User,
) => Pick<ServerTarget, 'user' | 'password' | 'scramKeys' | 'credentials'>

/** As `tls_verify` says; never over a Unix socket. @throws FILE_MISSING, NET_TLS_MATERIAL */
export function protectionOf(general: GeneralConfig): ProtectionOf {
  const { tlsVerify, tlsServerNegotiation: negotiation } = general
  const channelBinding = general.tlsServerChannelBinding
  if (tlsVerify === 'disabled') return () => ({ channelBinding })
  const files = {
    ...readInto('ca', general.tlsServerCaCertificate),
    ...readInto('cert', general.tlsServerCertificate),
    ...readInto('key', general.tlsServerPrivateKey),
  }
  checkTlsClient(files)
  const verify = ({ prefer: 'none', verify_ca: 'ca', verify_full: 'full' } as const)[tlsVerify]
  const minVersion = general.tlsMinVersion
  const mode = tlsVerify === 'prefer' ? 'prefer' : 'require'
  return (host) =>
    host.host.startsWith('/')
      ? { channelBinding }
      : {
          channelBinding,
          tls: { mode, negotiation, options: { host: host.host, verify, minVersion, ...files } },
        }
}

/** What the database entry, else users.toml says; one source of credentials for each user (and host, where they depend on it). */
export function configuredLogins(
  config: Pick<LoadedConfig, 'vault'>,
  env: Readonly<Record<string, string | undefined>> = process.env,
): LoginOf {
  const sources = new Map<string, CredentialSource>()
  return (host, user) => {
    const name = host.user ?? user.serverUser ?? user.name
    if (host.password === undefined && user.serverAuth !== 'password') {
      const provider = providerOf(config, host, { ...user, name }, env)
      const source = sources.get(provider.name) ?? keepCredentials(provider, systemClock)
      sources.set(provider.name, source)
      return { user: name, credentials: source }
    }
    const password = host.password ?? user.serverPassword ?? user.passwords[0]
    return { user: name, ...(password === undefined ? {} : { password }) }
  }
}

function providerOf(
  { vault }: Pick<LoadedConfig, 'vault'>,
  { host, port }: Host,
  user: User,
  env: Readonly<Record<string, string | undefined>>,
): CredentialProvider {
  const { serverAuth: kind, serverVaultPath: path = '', vaultRefreshPercent: refreshPercent } = user
  if (kind === 'azure_workload_identity') return azureProvider(env)
  if (kind === 'vault_dynamic' || kind === 'vault_static') {
    const place = present({ url: '', authMethod: 'approle' as const, ...vault })
    return vaultProvider(place as VaultPlace, { kind, path, refreshPercent }, env)
  }
  const { name, serverIamRegion: region } = user
  const place = { host, port, user: name, ...(region === undefined ? {} : { region }) }
  return rdsProvider(place, env, systemClock)
}

/** What the client itself has proved; never the login of the database entry, which would make it somebody else. */
export const guestLogin =
  (proof: LoginProof): LoginOf =>
  (_host, user) => ({ user: user.name, ...proof })

function readInto<N extends string>(name: N, path: string | undefined): Partial<Record<N, Buffer>> {
  return path === undefined ? {} : ({ [name]: readOrRefuse(path) } as Record<N, Buffer>)
}

/** @throws FILE_MISSING */
export function readOrRefuse(path: string): Buffer {
  try {
    return readFileSync(path)
  } catch (error) {
    const reason = error instanceof Error ? error.message.replace(/,.*/, '') : String(error)
    throw engineError('FILE_MISSING', { path, reason }, { cause: error })
  }
}
