/**
 * A statement keeps the meaning that its text had when the client prepared it: literals of dates, names by search_path.
 * Where it must be prepared anew after the client has changed such a setting, the old ones are put on for that moment.
 */
import type { Expectation } from '../../executor/relay.js'
import { queryFrame } from '../../server/server-connection.js'
import { readingOf, settingsDifference } from '../../server/settings.js'
import type { SharedStatement } from '../../server/shared-statement.js'
import type { HeldServer } from '../state/held-servers.js'
import type { Transaction } from '../state/transaction.js'
import { parseFrame, syncFrame } from './batch.js'

const FAILED = 0x45

/** What goes to a server by itself, before a request. */
export interface Preparation {
  readonly pieces: Buffer[]
  readonly expectations: Expectation[]
  readonly syncs: number
}

/** In the middle of a request nothing but its own messages can be sent, and a failed transaction takes none. */
export const canPrepare = ({ server }: HeldServer): boolean =>
  !server.isUnsynced && server.status !== FAILED

/** The client has changed what the text would be read by, so that an ordinary Parse would change its meaning. */
export const isReadAnew = (shared: SharedStatement, transaction: Transaction): boolean =>
  !readingOf(transaction.effective).equals(shared.reading)

/** Parse and Sync. */
export function prepareAs(name: string, shared: SharedStatement, done?: () => void): Preparation {
  return {
    pieces: [parseFrame(name, shared.text, shared.parameterTypes), syncFrame],
    expectations: [
      name === shared.serverName
        ? { kind: 'parse', skip: true, isLenient: true, statement: shared, done }
        : { kind: 'parse', skip: true, isLenient: true, done },
      { kind: 'sync', skip: true },
    ],
    syncs: 1,
  }
}

/** Under the settings by which the client's statement was read; leaves transaction and settings as they are. */
export function asRead(
  shared: SharedStatement,
  transaction: Transaction,
  inner: Preparation,
): Preparation {
  if (!isReadAnew(shared, transaction)) return inner
  const sets = settingsDifference(readingOf(transaction.effective), shared.reading)
    .replace(/(^|; )RESET ([^;]+)/g, '$1SET LOCAL $2 TO DEFAULT')
    .replace(/(^|; )SET (?!LOCAL )/g, '$1SET LOCAL ')
    .replace(/, false\)/g, ', true)')
  const isOpen = transaction.isExplicit
  // what was prepared stays when the rest is undone
  const before = isOpen ? 'SAVEPOINT pgshard' : 'BEGIN'
  const after = isOpen ? 'ROLLBACK TO pgshard; RELEASE pgshard' : 'ROLLBACK'
  const ours: Expectation = { kind: 'query', skip: true }
  return {
    pieces: [queryFrame(`${before}; ${sets}`), ...inner.pieces, queryFrame(after)],
    expectations: [ours, ...inner.expectations, ours],
    syncs: inner.syncs + 2,
  }
}
