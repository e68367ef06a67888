/** What a session is made of, once its client has logged in. */
import type { ByteSocket } from '../net/byte-socket.js'
import type { DatabaseAccess, SessionEnvironment } from './environment.js'
import type { Transaction } from './state/transaction.js'

export interface SessionOptions {
  readonly socket: ByteSocket
  readonly environment: SessionEnvironment
  readonly access: DatabaseAccess
  readonly transaction: Transaction
  readonly user: string
  readonly database: string
  /** Parameter values that the client was told at login. */
  readonly told: ReadonlyMap<string, string>
  /** As the client was told it. */
  processId(): number
}
