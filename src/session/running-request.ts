/** The request that runs now, and what its end means to the session around it. */
import type { EngineError } from '../errors/engine-error.js'
import type { Plan, PlannedStatement } from '../plan/plan.js'
import type { CompletedStatement } from './state/apply-effects.js'
import type { HeldServer } from './state/held-servers.js'

/** The request that runs now. */
export interface RunningRequest {
  readonly protocol: 'simple' | 'extended'
  /** Statements in the order in which their CommandComplete will come. */
  readonly statements: CompletedStatement[]
  at: number
  failed: boolean
  /** Flushed, and its Sync has not come: an error is not followed by ReadyForQuery yet. */
  awaitsSync: boolean
  readonly startedMs: number
}

/** What the core asks of the session around it. */
export interface SessionHooks {
  /** The request is done and the next may begin. */
  requestEnded(): void
  /** A request that stays open behind a Flush has its server, or none: what the client sent meanwhile may follow. */
  waitEnded(): void
  /** The server wants COPY data. */
  copyStarted(held: HeldServer): void
  copyEnded(): void
  /** The client's connection ends as the server's did. */
  ends(): void
  /** The client must go with this FATAL: now, or when its transaction is over. */
  mustEnd(error: EngineError, now: boolean): void
  /** Runs a Query message from its beginning: the shards were exchanged before a server had it. */
  runAgain(query: Buffer): void
  /** COPY FROM STDIN whose rows go to several shards. */
  shardedCopy(statement: PlannedStatement, plan: Plan, text: string): void
}
