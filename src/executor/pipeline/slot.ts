/** One request's place on a lane. It stays until its ReadyForQuery has come, also when nobody wants the answer any more. */
import type { ClassFigures } from '../../plan/plan.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import type { PipelinedClient, Unit } from './pipelined-client.js'
import type { Prelude } from './prelude.js'

/** Slots are used again: one for each statement that is under way, at the most. */
const MOST_SPARE = 512
const spare: Slot[] = []
const noUnit: Unit = { bytes: Buffer.alloc(0), length: 0 }

export class Slot {
  /** Absent: the answer is dropped (settings of ours, a client that left, a request that runs elsewhere now). */
  client: PipelinedClient | undefined
  unit: Unit
  /** Of the unit, which is not to be asked once it was written: the client may be on with another. */
  prepares: SharedStatement | undefined
  describes: SharedStatement | undefined
  hidesParse = false
  insertsParse = false
  /** Of the client's statement, also when the client has gone. */
  figures: ClassFigures | undefined
  costMs: number
  /** The server was idle before it. */
  isCold: boolean
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
  mustInsertParse = false
  /** Its Parse is not confirmed. */
  isParsing = false
  /** Answer held back until it is whole. */
  kept: Buffer[] | undefined

  private constructor(
    client: PipelinedClient | undefined,
    unit: Unit,
    costMs: number,
    isCold: boolean,
  ) {
    this.client = client
    this.unit = unit
    this.figures = client?.figures
    this.costMs = costMs
    this.isCold = isCold
    this.isWritten = isCold
    this.#read(unit)
  }

  static of(
    client: PipelinedClient | undefined,
    unit: Unit,
    costMs: number,
    isCold: boolean,
  ): Slot {
    const slot = spare.pop()
    if (!slot) return new Slot(client, unit, costMs, isCold)
    slot.client = client
    slot.unit = unit
    slot.figures = client?.figures
    slot.costMs = costMs
    slot.isCold = isCold
    slot.isWritten = isCold
    slot.#read(unit)
    return slot
  }

  #read(unit: Unit): void {
    this.prepares = unit.prepares
    this.describes = unit.describes
    this.hidesParse = unit.hidesParse === true
    this.insertsParse = unit.insertsParse === true
    this.mustInsertParse = this.insertsParse
    this.isParsing = this.prepares !== undefined
  }

  /** Nobody has it any more. */
  free(): void {
    if (spare.length >= MOST_SPARE) return
    this.client = undefined
    this.unit = noUnit
    this.figures = undefined
    this.prepares = undefined
    this.describes = undefined
    this.hidesParse = false
    this.insertsParse = false
    this.replyBytes = 0
    this.hasAnswered = false
    this.failed = false
    this.isCancelled = false
    this.wasQueued = false
    this.prelude = undefined
    this.isStray = false
    this.mustInsertParse = false
    this.isParsing = false
    this.kept = undefined
    spare.push(this)
  }
}
