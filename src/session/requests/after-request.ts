/** What a server is asked behind a request, before the client hears that it is over: values of the startup after DISCARD ALL, locks that are left after an unlock. */
import type { Expectation } from '../../executor/relay.js'
import type { PlannedStatement } from '../../plan/plan.js'
import { queryFrame } from '../../server/server-connection.js'
import type { SessionCore } from '../session-core.js'
import type { HeldServer } from '../state/held-servers.js'
import { afterDiscardAll } from '../state/startup-resets.js'

interface AfterRequest {
  readonly pieces: readonly Buffer[]
  readonly expectations: readonly Expectation[]
}

const nothing: AfterRequest = { pieces: [], expectations: [] }

/** Locks of the session; outside a transaction there are no others. */
const locksLeft = queryFrame(
  "SELECT 1 FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND pid = pg_catalog.pg_backend_pid() LIMIT 1",
)

/** For a request of `statements`; mostly nothing. */
export function afterRequest(
  core: SessionCore,
  held: HeldServer,
  statements: readonly PlannedStatement[],
): AfterRequest {
  const discard = statements.some(({ effects }) => effects.discard === 'all')
  const sql = discard ? afterDiscardAll(core.transaction.startup) : ''
  if (sql !== '') {
    const done = () => {
      held.server.unnamed = undefined
      if (!core.running?.failed) held.server.settings = core.transaction.settings
    }
    return {
      pieces: [queryFrame(sql)],
      expectations: [{ kind: 'query', skip: true, isLenient: true, done }],
    }
  }
  const unlocks = statements.some(({ effects }) => effects.unlocks)
  if (!unlocks || !core.held.pins.has('advisory lock') || core.transaction.isExplicit)
    return nothing
  const completed = (tag: string) => {
    if (tag === 'SELECT 0') core.held.pins.delete('advisory lock')
  }
  const done = () => {
    held.server.unnamed = undefined
  }
  return {
    pieces: [locksLeft],
    expectations: [{ kind: 'query', skip: true, isLenient: true, completed, done }],
  }
}
