/**
 * A portal over several servers that is read in portions: its servers are asked for all, so that they are free for what the
 * transaction does between the portions; the client gets as many rows as it asked for, and the rest waits here, bounded.
 */
import { type EngineError, engineError } from '../../errors/engine-error.js'
import type { RelayOutput } from '../../executor/relay.js'
import { backend } from '../../wire/tags.js'
import { closeCompleteFrame, completeFrame, portalSuspendedFrame } from '../answers.js'
import { StoredRows } from '../state/stored-rows.js'
import type { Step } from './batch-steps.js'

/** Passes the first rows on to the client and keeps the others. */
export class PortalRows implements RelayOutput {
  readonly rest = new StoredRows()
  readonly #output: RelayOutput
  readonly #limit: number
  readonly #maxBytes: number
  #sent = 0
  #kept = 0

  /** `maxBytes`: most that may wait; 0: nothing is asked for again. */
  constructor(output: RelayOutput, limit: number, maxBytes: number) {
    this.#output = output
    this.#limit = limit
    this.#maxBytes = maxBytes
  }

  /** Takes whole frames only. */
  forward(buffer: Buffer, start: number, end: number): void {
    let from = start
    let at = start
    while (at < end) {
      const next = at + 1 + buffer.readInt32BE(at + 1)
      if (buffer[at] === backend.dataRow && ++this.#sent > this.#limit) {
        if (at > from) this.#output.forward(buffer, from, at)
        this.#keep(buffer, at, next)
        from = next
      }
      at = next
    }
    if (end > from) this.#output.forward(buffer, from, end)
  }

  append(bytes: Buffer): void {
    this.#output.append(bytes)
  }

  flush(): boolean {
    return this.#output.flush()
  }

  /** More would have to wait than may. */
  get error(): EngineError | undefined {
    return this.#maxBytes > 0 && this.#kept > this.#maxBytes
      ? engineError('GATHER_TOO_MANY_BYTES', { limit: this.#maxBytes })
      : undefined
  }

  /** What stands behind the first portion. */
  get ending(): Buffer {
    return this.#sent >= this.#limit ? portalSuspendedFrame : completeFrame(`SELECT ${this.#sent}`)
  }

  #keep(buffer: Buffer, start: number, end: number): void {
    this.#kept += end - start
    if (this.#kept <= this.#maxBytes) this.rest.push(Buffer.from(buffer.subarray(start, end)))
  }
}

/** Answers of a batch that only reads on in such portals; undefined: it is about something else. @throws SESSION_SEVERAL_SHARDS_IN_REQUEST when it is about both */
export function nextPortions(steps: readonly Step[], isBound: boolean): Buffer[] | undefined {
  if (!steps.some((step) => step.kind === 'execute' && step.rest)) return undefined
  return steps.map((step) => {
    if (isBound) throw engineError('SESSION_SEVERAL_SHARDS_IN_REQUEST')
    if (step.kind === 'execute' && step.rest) return step.rest.take(Math.max(step.item.maxRows, 0))
    if (step.kind === 'close' && step.item.what === 'P') return closeCompleteFrame
    throw engineError('SESSION_SEVERAL_SHARDS_IN_REQUEST')
  })
}
