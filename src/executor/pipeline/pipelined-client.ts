/** What the pipeline knows of a request that it carries: bytes for a server, and where the answer goes. */
import type { EngineError } from '../../errors/engine-error.js'
import type { ClassFigures } from '../../plan/plan.js'
import type { ServerConnection } from '../../server/server-connection.js'
import type { Settings } from '../../server/settings.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import type { RelayOutput } from '../relay.js'

/** One request as one server is told it: it ends in its own ReadyForQuery. */
export interface Unit {
  /** At [0, length), the client's own until its request has ended. */
  readonly bytes: Buffer
  readonly length: number
  /** Its Parse makes the server hold this statement. */
  readonly prepares?: SharedStatement | undefined
  /** The ParseComplete of that Parse is not the client's. */
  readonly hidesParse?: boolean
  /** The client's own Parse is not sent: its ParseComplete is put in. */
  readonly insertsParse?: boolean
  /** Whose columns a Describe in it tells. */
  readonly describes?: SharedStatement | undefined
}

export interface PipelinedOutput extends RelayOutput {
  /** Bytes that the client has not taken yet. */
  readonly queuedBytes: number
  /** Takes borrowed bytes and writes all that was taken; says the same as `flush`. */
  pass(buffer: Buffer, start: number, end: number): boolean
}

/** What has a request now: a lane, or the line of those that wait for one. */
export interface Carrier {
  readonly isWaiting: boolean
  /** The client wants its request cancelled. True: it never runs, or nobody hears of it, and the client is to be answered; false: the server was asked and will answer. */
  cancel(client: PipelinedClient): boolean
  /** The client has gone. */
  leave(client: PipelinedClient): void
  /** The client has read what was waiting. */
  resume(): void
}

export interface PipelinedClient {
  readonly output: PipelinedOutput
  /** Without application_name and routing hints (hard-parts §1.7). */
  readonly settings: Settings
  readonly figures: ClassFigures
  /** The prepared statement that it runs; absent in the simple protocol. */
  readonly statement: SharedStatement | undefined
  /** It has waited; the lane carries it from now on. */
  carriedBy(carrier: Carrier): void
  unitFor(server: ServerConnection): Unit
  /** ParseComplete has come, or stands in for it. */
  parsed(): void
  /** An ErrorResponse is forwarded next. */
  failed(): void
  parameterStatus(buffer: Buffer, start: number, end: number): void
  /** ReadyForQuery is forwarded next. */
  ready(): void
  /** ReadyForQuery was sent, of a read that began at `nowMs`. */
  finished(nowMs: number): void
  /** Nothing of it has reached the client: it must run on a server of its own. */
  elsewhere(): void
  /** The server was lost while it ran the request. `ends`: the client has its FATAL, or a part of a row: nothing more can be said to it. */
  lost(error: EngineError, ends: boolean): void
}
