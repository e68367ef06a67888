/** What one client keeps, for the console. */
import type { ClientHoldings } from './environment.js'
import type { SessionCore } from './session-core.js'

/** `pendingBytes`: of a message that has not come whole. */
export function holdingsOf(core: SessionCore, pendingBytes: number): ClientHoldings {
  return {
    servers: core.held.all().map(({ server }) => server),
    memory: {
      usedBytes: pendingBytes,
      setAsideBytes: pendingBytes,
      unsentBytes: core.output.queuedBytes,
      preparedBytes: core.statements.bytes,
    },
  }
}
