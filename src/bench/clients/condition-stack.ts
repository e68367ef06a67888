/** \if … \endif while a script runs. Source followed: conditional.c and CSTATE_SKIP_COMMAND in pgbench.c. */

type State = 'true' | 'false' | 'ignored' | 'else-true' | 'else-false'

export class ConditionStack {
  readonly #states: State[] = []

  get isActive(): boolean {
    const top = this.#states.at(-1)
    return top === undefined || top === 'true' || top === 'else-true'
  }

  reset(): void {
    this.#states.length = 0
  }

  /** \if that is reached. */
  enter(isTrue: boolean): void {
    this.#states.push(isTrue ? 'true' : 'false')
  }

  /** \if inside a branch that is not run. */
  enterSkipped(): void {
    this.#states.push('ignored')
  }

  /** True when the condition of an \elif has to be computed. */
  get wantsElif(): boolean {
    return this.#states.at(-1) === 'false'
  }

  elif(isTrue: boolean): void {
    this.#states[this.#states.length - 1] = isTrue ? 'true' : 'false'
  }

  /** \elif after a branch that was run. */
  skipElif(): void {
    if (this.#states.at(-1) === 'true') this.#states[this.#states.length - 1] = 'ignored'
  }

  else(): void {
    const top = this.#states.at(-1)
    if (top === 'true') this.#states[this.#states.length - 1] = 'else-false'
    else if (top === 'false') this.#states[this.#states.length - 1] = 'else-true'
  }

  leave(): void {
    this.#states.pop()
  }
}
