/** Where to connect and as whom. */
import type { ScramSecretKeys } from '../auth/scram-client.js'
import type { SocketAddress } from '../net/connect.js'
import type { TlsClientOptions } from '../net/tls-upgrade.js'

export interface ServerTarget {
  /** A host that begins with `/` is a directory of Unix sockets. */
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
  /** In clear, or its md5 form where the server asks for md5. */
  readonly password?: string
  /** Instead of the password where the server asks for SCRAM: what a client of ours has proved. */
  readonly scramKeys?: ScramSecretKeys
  /** Instead of user and password: asked before each login. */
  readonly credentials?: CredentialSource
  /** The server must ask for the password, because the login is to prove that it is right. */
  readonly mustAskPassword?: boolean
  /** Startup parameters, such as application_name or options. */
  readonly parameters?: Readonly<Record<string, string>>
  /** `prefer` goes on without TLS when the server has none. Absent: plain. */
  readonly tls?: {
    readonly mode: 'prefer' | 'require'
    readonly options: TlsClientOptions
    /** `postgres` when absent. */
    readonly negotiation?: 'postgres' | 'direct'
  }
  /** SCRAM-SHA-256-PLUS; `prefer` when absent. */
  readonly channelBinding?: 'disable' | 'prefer' | 'require'
}

export interface ServerCredentials {
  /** Absent: the user of the target. */
  readonly user?: string
  readonly password: string
}

/** Passwords that somebody else gives out, for a while. */
export interface CredentialSource {
  /** Says which, without a secret: equal names give equal credentials. */
  readonly name: string
  /** @throws SERVER_CREDENTIALS_FAILED */
  get(): Promise<ServerCredentials>
}

/** The socket address of a target. @see PostgreSQL documentation, "unix_socket_directories" for the file name */
export function socketAddress(target: { host: string; port: number }): SocketAddress {
  return target.host.startsWith('/')
    ? { path: `${target.host}/.s.PGSQL.${target.port}` }
    : { host: target.host, port: target.port }
}
