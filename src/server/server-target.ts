/** Where to connect and as whom. */
import type { SocketAddress } from '../net/connect.js'
import type { TlsClientOptions } from '../net/tls-upgrade.js'

export interface ServerTarget {
  /** A host that begins with `/` is a directory of Unix sockets. */
  readonly host: string
  readonly port: number
  readonly user: string
  readonly database: string
  readonly password?: string
  /** Startup parameters, such as application_name or options. */
  readonly parameters?: Readonly<Record<string, string>>
  /** `prefer` goes on without TLS when the server has none. Absent: plain. */
  readonly tls?: { readonly mode: 'prefer' | 'require'; readonly options: TlsClientOptions }
}

/** The socket address of a target. @see PostgreSQL documentation, "unix_socket_directories" for the file name */
export function socketAddress(target: { host: string; port: number }): SocketAddress {
  return target.host.startsWith('/')
    ? { path: `${target.host}/.s.PGSQL.${target.port}` }
    : { host: target.host, port: target.port }
}
