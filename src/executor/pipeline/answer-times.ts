/** How long a lane's answers took, class by class: what came in one read is measured as one, and each had its part of the time. */
import type { ClassFigures } from '../../plan/plan.js'
import { noteRun, noteRunAlone } from './class-figures.js'
import type { LaneOwner } from './lane-owner.js'
import type { Slot } from './slot.js'

export class AnswerTimes {
  readonly #owner: LaneOwner
  /** Answered in the read that is under way, all together in so many milliseconds. */
  readonly #answered: Slot[] = []
  #elapsedMs = 0
  #readAtMs = 0

  constructor(owner: LaneOwner) {
    this.#owner = owner
  }

  /**
   * A request was answered, which is at the head since `headSinceMs`; gives since when the next one is. Time counts up to
   * the beginning of the read: while answers are handed on the server works already on what follows.
   */
  answered(slot: Slot, headSinceMs: number): number {
    if (this.#answered.length === 0) {
      this.#readAtMs = this.#owner.clock.monotonicMs()
      this.#elapsedMs = this.#readAtMs - headSinceMs
    }
    this.#answered.push(slot)
    return this.#readAtMs
  }

  readEnds(): void {
    const answered = this.#answered
    const [first] = answered
    if (!first) return
    if (first.figures && first.isCold && first.figures.hotRuns > 0) this.#noteWakeUp(first.figures)
    else for (const slot of answered) this.#note(slot, this.#elapsedMs / answered.length)
    for (const slot of answered) slot.free()
    answered.length = 0
  }

  /** How long the statements take by themselves is known, so the rest is how long the server slept. */
  #noteWakeUp(figures: ClassFigures): void {
    const { limits, wakeUp } = this.#owner
    if (this.#elapsedMs >= limits.stallMs) return
    let besides = 0
    for (let i = 1; i < this.#answered.length; i++) besides += this.#answered[i]?.costMs ?? 0
    wakeUp.note(this.#elapsedMs - besides, figures)
  }

  #note(slot: Slot, elapsedMs: number): void {
    const { figures } = slot
    if (!figures) return
    if (!slot.isCold) figures.hotRuns++
    if (slot.failed || slot.isStray) return
    const use = slot.isCold ? noteRunAlone : noteRun
    use(figures, elapsedMs, slot.replyBytes, this.#owner.limits.stallMs)
  }
}
