/** \gset and \aset: columns of a result become variables. Source followed: readCommandResponse in pgbench.c. */
import { isEngineError } from '../../errors/engine-error.js'
import type { QueryResult } from '../clients/bench-connection.js'
import type { Variables } from './variables.js'

interface Problem {
  readonly queryIndex: number
  readonly message: string
  /** What is told before it. */
  readonly detail?: string
}

function store(
  result: QueryResult,
  queryIndex: number,
  mode: 'gset' | 'aset',
  prefix: string,
  variables: Variables,
): Problem | undefined {
  for (const [i, column] of (result.columns ?? []).entries()) {
    const name = prefix + column
    try {
      variables.setText(name, result.lastRow[i] ?? '', mode)
    } catch (error) {
      if (!isEngineError(error)) throw error
      return {
        queryIndex,
        message: `error storing into variable ${name}`,
        detail: error.message,
      }
    }
  }
  return undefined
}

/** The last result (gset) or every result with rows (aset) into `variables`; says what is wrong. */
export function keepResults(
  results: readonly QueryResult[],
  { mode, prefix }: { readonly mode: 'gset' | 'aset'; readonly prefix: string },
  variables: Variables,
): Problem | undefined {
  for (const [queryIndex, result] of results.entries()) {
    const isLast = queryIndex === results.length - 1
    if (mode === 'gset' && !isLast) continue
    const rowCount = result.columns === undefined ? 0 : result.rowCount
    if (mode === 'gset' && rowCount !== 1)
      return { queryIndex, message: `expected one row, got ${rowCount}` }
    if (rowCount === 0) continue
    const problem = store(result, queryIndex, mode, prefix, variables)
    if (problem !== undefined) return problem
  }
  return undefined
}
