/** What the pipelined requests of a client know of the session around them, and of how a request runs on a server of its own. */
import type { Clock } from '../../base/clock.js'
import type { EngineError } from '../../errors/engine-error.js'
import type { PlannedStatement, RouteContext } from '../../plan/plan.js'
import type { ClientOutput } from '../client-output.js'
import type { ClientFigures, DatabaseAccess } from '../environment.js'
import type { ClientStatements } from '../state/client-statements.js'
import type { HeldServers } from '../state/held-servers.js'
import type { Transaction } from '../state/transaction.js'

/** The session around it. */
export interface PipelinedHost {
  readonly environment: { readonly clock: Clock }
  readonly access: DatabaseAccess
  readonly output: ClientOutput
  readonly transaction: Transaction
  readonly held: HeldServers
  readonly statements: ClientStatements
  readonly figures: ClientFigures
  readonly told: ReadonlyMap<string, string>
  /** Absent: it never listened. */
  readonly listening?: { tell(): void } | undefined
  readonly timedOut: EngineError | undefined
  readonly hooks: { ends(): void }
  begin(protocol: 'simple', statements: []): void
  /** The same for a request that only reads, at `nowMs`. */
  beginShared(protocol: 'simple' | 'extended', nowMs: number, only: PlannedStatement): void
  routeContext(): RouteContext
  noteStatus(buffer: Buffer, start: number, end: number): void
  tellChanges(): void
  fail(error: EngineError): void
  ended(): void
  /** The end of what `beginShared` began, on a server that it shared all the time. */
  endedShared(nowMs: number): void
}

/** A request, and how it runs on a server of its own. */
export interface PipelinableRequest {
  readonly shard: number
  readonly role: 'primary' | 'any'
  /** Runs it from the beginning; `query` are the bytes of a Query, owned. */
  alone(query: Buffer): void
  /** The same for another Query of its template, which was not read. */
  unread?(query: Buffer): void
  /** The same for the messages of a batch, Sync included. */
  again?(batch: Buffer): void
}
