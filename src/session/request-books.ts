/** What a client's requests and transactions took, at their ends. Called for every request: no allocation, no look at the clock. */
import {
  CONTROL,
  NO_SHARD,
  READ,
  REQUEST_CLASSES,
  type RequestTimes,
  WRITE,
} from '../metrics/request-times.js'
import type { Plan, PlannedStatement } from '../plan/plan.js'
import type { ClientFigures } from './environment.js'
import type { RunningRequest } from './running-request.js'
import { isNeutral } from './state/apply-effects.js'

export class RequestBooks {
  readonly #figures: ClientFigures
  readonly #times: RequestTimes | undefined
  #idleSinceMs: number | undefined
  #transactionSinceMs: number | undefined

  constructor(figures: ClientFigures, times: RequestTimes | undefined) {
    this.#figures = figures
    this.#times = times
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
    if (isExplicit) {
      this.#transactionSinceMs ??= running.startedMs
      this.#idleSinceMs = nowMs
      return
    }
    this.#figures.transactionMs += nowMs - (this.#transactionSinceMs ?? running.startedMs)
    this.#transactionSinceMs = undefined
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
export function noteSeveral(running: RunningRequest | undefined, { how }: Plan): void {
  if (!running) return
  running.requestClass = classOfPlan[how]
  running.shard = NO_SHARD
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
}
