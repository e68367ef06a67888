/**
 * A statement keeps the meaning that its text had when the client prepared it: literals of dates, names by search_path.
 * Where it must be prepared anew after the client has changed such a setting, the old ones are put on for that moment.
 */
import type { Expectation } from '../executor/relay.js'
import { queryFrame } from '../server/server-connection.js'
import { readingOf, settingsDifference } from '../server/settings.js'
import type { SharedStatement } from '../server/shared-statement.js'
import { parseFrame, syncFrame } from './batch.js'
import type { HeldServer } from './held-servers.js'
import type { Transaction } from './transaction.js'

const FAILED = 0x45

/** The client has changed what the text would be read by, so that an ordinary Parse would change its meaning. */
export function isReadAnew(
  shared: SharedStatement,
  held: HeldServer,
  transaction: Transaction,
): boolean {
  // in the middle of a request nothing but its own messages can be sent, and a failed transaction takes none
  if (held.server.isUnsynced || held.server.status === FAILED) return false
  return !readingOf(transaction.effective).equals(shared.reading)
}

/** What goes before a request; leaves transaction and settings as they are. */
export function prepareAsRead(
  shared: SharedStatement,
  transaction: Transaction,
): { pieces: Buffer[]; expectations: Expectation[]; syncs: number } {
  const present = readingOf(transaction.effective)
  const sets = settingsDifference(present, shared.reading)
    .replace(/(^|; )RESET ([^;]+)/g, '$1SET LOCAL $2 TO DEFAULT')
    .replace(/(^|; )SET (?!LOCAL )/g, '$1SET LOCAL ')
    .replace(/, false\)/g, ', true)')
  const isOpen = transaction.isExplicit
  const before = isOpen ? 'SAVEPOINT pgshard' : 'BEGIN'
  const after = isOpen ? 'ROLLBACK TO pgshard; RELEASE pgshard' : 'ROLLBACK'
  return {
    pieces: [
      queryFrame(`${before}; ${sets}`),
      parseFrame(shared.serverName, shared.text, shared.parameterTypes),
      syncFrame,
      queryFrame(after),
    ],
    expectations: [
      { kind: 'query', skip: true },
      { kind: 'parse', skip: true, isLenient: true, statement: shared },
      { kind: 'sync', skip: true },
      { kind: 'query', skip: true },
    ],
    syncs: 3,
  }
}
