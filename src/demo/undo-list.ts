/** What must be undone at the end, whatever happens: run last first, each tried, failures told and not thrown. */

export class UndoList {
  readonly #steps: { what: string; undo: () => Promise<unknown> | unknown }[] = []

  add(what: string, undo: () => Promise<unknown> | unknown): void {
    this.#steps.push({ what, undo })
  }

  /** Undoes everything once; returns what could not be undone. */
  async run(): Promise<string[]> {
    const failures: string[] = []
    for (let step = this.#steps.pop(); step; step = this.#steps.pop()) {
      try {
        await step.undo()
      } catch (error) {
        failures.push(`${step.what}: ${error instanceof Error ? error.message : String(error)}`)
      }
    }
    return failures
  }
}
