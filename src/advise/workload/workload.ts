/** What a workload is to `advise`: statements, how often each was run, and the values it was run with where they are known. */

export interface WorkloadStatement {
  readonly sql: string
  readonly calls: number
  /** Text forms of $1, $2, …; absent: not known. */
  readonly parameters?: readonly (string | null)[]
}

export interface Workload {
  readonly statements: readonly WorkloadStatement[]
  /** What could not be taken, one sentence each. */
  readonly notes: readonly string[]
}

/** Different statements that are kept; a log with literals may have any number. */
const mostStatements = 100_000

/** Counts equal statements together, in the order in which they first came. */
export class WorkloadCollector {
  readonly #found = new Map<string, { statement: WorkloadStatement; calls: number }>()
  readonly #notes: string[] = []
  #dropped = 0

  add(sql: string, calls: number, parameters?: readonly (string | null)[]): void {
    const key = parameters ? JSON.stringify([sql, parameters]) : sql
    const known = this.#found.get(key)
    if (known) known.calls += calls
    else if (this.#found.size === mostStatements) this.#dropped += calls
    else {
      const statement = { sql, calls, ...(parameters ? { parameters } : {}) }
      this.#found.set(key, { statement, calls })
    }
  }

  note(sentence: string): void {
    this.#notes.push(sentence)
  }

  finish(): Workload {
    const statements = [...this.#found.values()].map(({ statement, calls }) => ({
      ...statement,
      calls,
    }))
    const dropped =
      this.#dropped === 0
        ? []
        : [`${this.#dropped} calls beyond ${mostStatements} different statements were left out`]
    return { statements, notes: [...this.#notes, ...dropped] }
  }
}
