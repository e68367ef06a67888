/** What a client's requests and transactions took, at their ends. Called for every request: no allocation, no look at the clock. */
import {
  CONTROL,
  NO_SHARD,
  READ,
  REQUEST_CLASSES,
  type RequestTimes,
  WRITE,
} from '../metrics/request-times.js'
import { noteSeen, REFUSED, type StatementBook } from '../metrics/statement-book.js'
import type { Plan, PlannedStatement } from '../plan/plan.js'
import type { ClientFigures, SlowLog } from './environment.js'
import type { RunningRequest } from './running-request.js'
import { isNeutral } from './state/apply-effects.js'

/** Where it is noted, and how many shards a statement for all of them has. */
export interface BooksAccess {
  readonly times?: RequestTimes
  readonly seen?: StatementBook
  readonly slow?: SlowLog
  readonly planner: { readonly shardCount: number }
}

export class RequestBooks {
  readonly #figures: ClientFigures
  readonly #times: RequestTimes | undefined
  readonly #access: BooksAccess
  #idleSinceMs: number | undefined
  #transactionSinceMs: number | undefined

  constructor(figures: ClientFigures, access: BooksAccess) {
    this.#figures = figures
    this.#times = access.times
    this.#access = access
  }

  starts(nowMs: number): void {
    if (this.#idleSinceMs === undefined) return
    this.#figures.idleTransactionMs += nowMs - this.#idleSinceMs
    this.#idleSinceMs = undefined
  }

  ended(running: RunningRequest, nowMs: number, isExplicit: boolean): void {
    const elapsedMs = nowMs - running.startedMs
    this.#figures.queryMs += elapsedMs
    this.#times?.record(running.requestClass, running.shard, elapsedMs)
    const { slow } = this.#access
    if (slow && elapsedMs >= slow.minMs) slow.report(running, elapsedMs)
    if (running.only) this.#see(running.only, running, elapsedMs)
    if (isExplicit) {
      this.#transactionSinceMs ??= running.startedMs
      this.#idleSinceMs = nowMs
      return
    }
    this.#figures.transactionMs += nowMs - (this.#transactionSinceMs ?? running.startedMs)
    this.#transactionSinceMs = undefined
  }

  #see(statement: PlannedStatement, running: RunningRequest, elapsedMs: number): void {
    const { figures } = statement
    const book = this.#access.seen
    if (!figures || !book) return
    if (!figures.seen?.isKept) figures.seen = book.of(statement.shape?.() ?? '')
    const shards = running.shards < 0 ? this.#access.planner.shardCount : running.shards
    const what = shards === 0 ? REFUSED : running.requestClass
    noteSeen(figures.seen, what, shards, elapsedMs, running.failed)
  }
}

/** What a request becomes on its one shard. */
export function classOnShard(statements: readonly PlannedStatement[]): number {
  let found = CONTROL
  for (const statement of statements) {
    if (isNeutral(statement)) continue
    if (!statement.isRead) return WRITE
    found = READ
  }
  return found
}

const classOfPlan: Readonly<Record<Plan['how'], number>> = {
  relay: READ,
  concatenate: REQUEST_CLASSES.indexOf('scatter'),
  merge: REQUEST_CLASSES.indexOf('merge'),
  gather: REQUEST_CLASSES.indexOf('gather'),
  split: REQUEST_CLASSES.indexOf('split'),
  everywhere: REQUEST_CLASSES.indexOf('everywhere'),
  copy: REQUEST_CLASSES.indexOf('copy'),
  explain: REQUEST_CLASSES.indexOf('explain'),
  refuse: CONTROL,
}

/** Notes that several shards work for a request. */
export function noteSeveral(
  running: RunningRequest | undefined,
  { how, target }: Plan,
  statement: PlannedStatement,
): void {
  if (!running) return
  running.requestClass = classOfPlan[how]
  running.shard = NO_SHARD
  running.only = statement
  running.shards = how === 'refuse' ? 0 : target.kind === 'some' ? target.shards.length : -1
}

/** Notes that one shard has the whole request. */
export function noteShard(
  running: RunningRequest | undefined,
  statements: readonly PlannedStatement[],
  shard: number,
): void {
  if (!running) return
  running.requestClass = classOnShard(statements)
  running.shard = shard
  running.only = statements.length === 1 ? statements[0] : undefined
  running.shards = 1
}
