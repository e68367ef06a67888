/** One request's place on a lane. It stays until its ReadyForQuery has come, also when nobody wants the answer any more. */
import type { ClassFigures } from '../../plan/plan.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import type { PipelinedClient, Unit } from './pipelined-client.js'
import type { Prelude } from './prelude.js'

export class Slot {
  /** Absent: the answer is dropped (settings of ours, a client that left, a request that runs elsewhere now). */
  client: PipelinedClient | undefined
  readonly unit: Unit
  /** Of the unit, which is not to be asked once it was written: the client may be on with another. */
  readonly prepares: SharedStatement | undefined
  readonly describes: SharedStatement | undefined
  readonly hidesParse: boolean
  readonly insertsParse: boolean
  /** Of the client's statement, also when the client has gone. */
  readonly figures: ClassFigures | undefined
  readonly costMs: number
  /** The server was idle before it. */
  readonly isCold: boolean
  isWritten: boolean
  /** Bytes of the answer so far. */
  replyBytes = 0
  /** Some of the answer was handed to the client. */
  hasAnswered = false
  failed = false
  /** The client asked for a cancel. */
  isCancelled = false
  /** Stood behind another. */
  wasQueued = false
  /** Settings of ours, which end with this ReadyForQuery. */
  prelude: Prelude | undefined
  /** Runs again elsewhere once its ReadyForQuery has come. */
  isStray = false
  mustInsertParse: boolean
  /** Its Parse is not confirmed. */
  isParsing: boolean
  /** Answer held back until it is whole. */
  kept: Buffer[] | undefined

  constructor(client: PipelinedClient | undefined, unit: Unit, costMs: number, isCold: boolean) {
    this.client = client
    this.unit = unit
    this.prepares = unit.prepares
    this.describes = unit.describes
    this.hidesParse = unit.hidesParse === true
    this.insertsParse = unit.insertsParse === true
    this.figures = client?.figures
    this.costMs = costMs
    this.isCold = isCold
    this.isWritten = isCold
    this.mustInsertParse = this.insertsParse
    this.isParsing = this.prepares !== undefined
  }
}
