/** What a server must hear before the next request of a client: statements to close, settings that differ, BEGIN and what the transaction has done so far. */
import type { Expectation } from '../../executor/relay.js'
import { queryFrame, type ServerConnection } from '../../server/server-connection.js'
import { settingsDifference } from '../../server/settings.js'
import { namedFrame, syncFrame } from '../requests/batch.js'
import type { Transaction } from './transaction.js'

/** Settings that a server may refuse although another took them, so that the request must wait for the answer. */
const REFUSABLE = /\b(role|session_authorization|default_tablespace|temp_tablespaces)\b/

/** What goes to a server before the client's bytes. */
export interface Prelude {
  readonly bytes: Buffer[]
  readonly expectations: Expectation[]
  readonly syncs: number
  /** The request must not be sent before this was answered. */
  readonly mustWait: boolean
}

/** A server that a client holds. */
interface Hearing {
  readonly server: ServerConnection
  /** The open transaction was begun on it. */
  joined: boolean
}

interface Told {
  readonly bytes: Buffer[]
  readonly expectations: Expectation[]
  syncs: number
}

/** Whether there will be something to say: a Query, which takes the server's unnamed statement. */
export function needsPrelude(held: Hearing, transaction: Transaction): boolean {
  if (held.server.isUnsynced) return false
  if (transaction.isExplicit && !held.joined) return true
  return !transaction.isExplicit && held.server.settings !== transaction.settings
}

export function preludeOf(held: Hearing, transaction: Transaction): Prelude {
  const prelude = {
    bytes: [] as Buffer[],
    expectations: [] as Expectation[],
    syncs: 0,
    mustWait: false,
  }
  closeOld(held.server, prelude)
  const joins = transaction.isExplicit && !held.joined
  if (!transaction.isExplicit || joins) {
    const wanted = transaction.isExplicit ? transaction.base : transaction.settings
    const sql = settingsDifference(held.server.settings, wanted)
    if (sql !== '') {
      prelude.mustWait = REFUSABLE.test(sql)
      addQuery(prelude, sql, () => {
        held.server.settings = wanted
      })
    }
  }
  if (joins) {
    held.joined = true
    const isRead = transaction.readOnly
    prelude.mustWait ||= isRead && transaction.needsOneSnapshot
    addQuery(prelude, [transaction.beginText, ...transaction.replay].join('; '), () => {
      if (transaction.phase === 'pending') transaction.phase = 'open'
    })
  }
  return prelude
}

function closeOld(server: ServerConnection, prelude: Told): void {
  if (server.closing.length === 0 || server.status !== 0x49) return
  for (const statement of server.closing) {
    prelude.bytes.push(namedFrame('close', 'S', statement.serverName))
    prelude.expectations.push({ kind: 'close', skip: true })
  }
  server.traffic.preparedCloses += server.closing.length
  server.closing = []
  prelude.bytes.push(syncFrame)
  prelude.expectations.push({ kind: 'sync', skip: true })
  prelude.syncs++
}

function addQuery(prelude: Told, sql: string, done: () => void): void {
  prelude.bytes.push(queryFrame(sql))
  prelude.expectations.push({ kind: 'query', skip: true, done })
  prelude.syncs++
}
