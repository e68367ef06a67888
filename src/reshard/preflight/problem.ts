/** What preflight finds. */
export interface Problem {
  /** `error` refuses the move, `warning` is said and passed. */
  readonly severity: 'error' | 'warning'
  /** A server or a table. */
  readonly where: string
  readonly what: string
  /** A command, or what to do. */
  readonly mend: string
}

export const error = (where: string, what: string, mend: string): Problem => ({
  severity: 'error',
  where,
  what,
  mend,
})

export const warning = (where: string, what: string, mend: string): Problem => ({
  severity: 'warning',
  where,
  what,
  mend,
})
