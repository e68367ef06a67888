/** The request that runs now, and what its end means to the session around it. */
import type { EngineError } from '../errors/engine-error.js'
import { CONTROL, NO_SHARD, READ } from '../metrics/request-times.js'
import type { Plan, PlannedStatement } from '../plan/plan.js'
import type { ClientOutput } from './client-output.js'
import type { ClientFigures, DatabaseAccess, SessionEnvironment } from './environment.js'
import type { CompletedStatement } from './state/apply-effects.js'
import type { HeldServer } from './state/held-servers.js'
import type { Transaction } from './state/transaction.js'

/** The request that runs now. */
export interface RunningRequest {
  protocol: 'simple' | 'extended'
  /** Statements in the order in which their CommandComplete will come. */
  statements: CompletedStatement[]
  at: number
  failed: boolean
  /** Flushed, and its Sync has not come: an error is not followed by ReadyForQuery yet. */
  awaitsSync: boolean
  startedMs: number
  /** Of REQUEST_CLASSES, and the one shard that has it. */
  requestClass: number
  shard: number
  /** The only statement of it, and how many shards work for that; -1: all of them. */
  only: PlannedStatement | undefined
  shards: number
  /** Called once the client has heard its end. */
  whenEnded?: () => void
}

export const newRequest = (
  protocol: RunningRequest['protocol'],
  statements: CompletedStatement[],
  startedMs: number,
): RunningRequest => ({
  protocol,
  statements,
  at: 0,
  failed: false,
  awaitsSync: false,
  startedMs,
  requestClass: CONTROL,
  shard: NO_SHARD,
  only: undefined,
  shards: 0,
})

export const newSharedRequest = (): RunningRequest => ({
  protocol: 'simple',
  statements: [],
  at: 0,
  failed: false,
  awaitsSync: false,
  startedMs: Number.NEGATIVE_INFINITY,
  requestClass: READ,
  shard: 0,
  only: undefined,
  shards: 1,
})

/** Statements of one request that run one after the other, each in its own way. */
export interface RequestScript {
  /** A statement was answered, where ReadyForQuery would stand. */
  statementEnded(): void
  /** True: the end of the last statement's answer waits until the transaction is committed. `frame` is owned. */
  holdsBack(frame: Buffer): boolean
  /** A server of the transaction was lost while another worked. */
  lost(error: EngineError): void
  /** How the whole request is run anew, should the shards be exchanged while its first statement waits for a server. */
  repeatBy(again: () => void): void
}

/** What a core is made of. */
export interface CoreParts {
  readonly environment: SessionEnvironment
  readonly access: DatabaseAccess
  readonly output: ClientOutput
  readonly transaction: Transaction
  readonly figures: ClientFigures
  readonly told: ReadonlyMap<string, string>
  readonly hooks: SessionHooks
  readonly identity: { readonly user: string; processId(): number }
}

/** What the core asks of the session around it. */
export interface SessionHooks {
  /** The request is done and the next may begin. */
  requestEnded(): void
  /** The same for one that shared a server and changed nothing. */
  sharedEnded(): void
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
