/**
 * Connections of the probers and of the checker. A statement that gets no answer in time ends its connection: a server
 * that hangs must not hang its prober.
 */
import type pg from 'pg'
import type { Clock } from '../base/clock.js'
import { engineError } from '../errors/engine-error.js'
import { adminQuery, closePg, type TextRow } from '../pg/admin-query.js'
import { connectPg, destroySocket } from '../pg/connect.js'
import type { HaPlan } from './ha-plan.js'

export interface Link {
  /** Autocommit. Rejects also when there is no answer in time; the link is of no use then. */
  run(sql: string, parameters?: readonly (string | number | null)[]): Promise<TextRow[]>
  close(): Promise<void>
}

/** Opens a link to a node (its connection string), or to the state database (undefined). */
export type OpenLink = (conninfo: string | undefined) => Promise<Link>

/** Links as the probers' role. Times are UTC in every session, so that no setting of a database shifts an age. */
export function openLinks(plan: HaPlan, clock: Clock): OpenLink {
  return async (conninfo) => {
    const timeoutMs = plan.connectTimeoutMs
    const client = await within(
      connectPg(conninfo ?? plan.state, {
        clock,
        applicationName: 'pgshard ha',
        overrides: {
          user: plan.user,
          password: plan.password ?? '', // never that of the user in the string; empty: .pgpass
          connect_timeout: String(Math.max(1, Math.ceil(timeoutMs / 1000))),
          options: '-c TimeZone=UTC',
        },
      }),
      { timeoutMs, clock, what: 'a connection' },
    )
    client.on('error', () => undefined) // the next statement says so
    return linkOf(client, timeoutMs, clock)
  }
}

function linkOf(client: pg.Client, timeoutMs: number, clock: Clock): Link {
  return {
    run: async (sql, parameters = []) => {
      try {
        const answer = adminQuery(client, sql, parameters)
        return await within(answer, { timeoutMs, clock, what: 'an answer' })
      } catch (error) {
        destroySocket(client)
        throw error
      }
    },
    close: () => closePg(client, clock),
  }
}

async function within<T>(
  work: Promise<T>,
  limit: { readonly timeoutMs: number; readonly clock: Clock; readonly what: string },
): Promise<T> {
  const done = new AbortController()
  const late = limit.clock.sleep(limit.timeoutMs, done.signal).then(() => {
    if (done.signal.aborted) return undefined as never
    throw engineError('HA_TIMEOUT', { what: limit.what, ms: limit.timeoutMs })
  })
  try {
    work.catch(() => undefined)
    return await Promise.race([work, late])
  } finally {
    done.abort()
    late.catch(() => undefined)
  }
}
