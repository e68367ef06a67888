/** The figures of one client, from nothing, and their sum over several. */
import type { ClientFigures } from './environment.js'

export function newFigures(): ClientFigures {
  return {
    queries: 0,
    transactions: 0,
    twoPhase: 0,
    errors: 0,
    bytesReceived: 0,
    bytesSent: 0,
    waitMs: 0,
    queryMs: 0,
    transactionMs: 0,
    idleTransactionMs: 0,
  }
}

export function addFigures(sum: ClientFigures, figures: ClientFigures): void {
  sum.queries += figures.queries
  sum.transactions += figures.transactions
  sum.twoPhase += figures.twoPhase
  sum.errors += figures.errors
  sum.bytesReceived += figures.bytesReceived
  sum.bytesSent += figures.bytesSent
  sum.waitMs += figures.waitMs
  sum.queryMs += figures.queryMs
  sum.transactionMs += figures.transactionMs
  sum.idleTransactionMs += figures.idleTransactionMs
}
