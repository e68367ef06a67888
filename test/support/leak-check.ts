/**
 * After every test of a file: no socket, server or child process more than before it, and nothing
 * left in the PostgreSQL servers that it was given. Call `checkLeaks()` at the top of a file.
 */
import { afterEach, beforeEach } from 'vitest'
import { waitFor } from './wait-for.js'

/** Names of libuv's handles that a forgotten connection, listener or program leaves. */
const counted = ['TCPSocketWrap', 'TCPServerWrap', 'PipeWrap', 'TLSWrap', 'ProcessWrap']

function handles(): Record<string, number> {
  const found: Record<string, number> = {}
  for (const name of process.getActiveResourcesInfo())
    if (counted.includes(name)) found[name] = (found[name] ?? 0) + 1
  return found
}

/** Fails a test that leaves more open handles than there were before it. */
export function checkLeaks(options: { deadlineMs?: number } = {}): void {
  let before: Record<string, number> = {}
  beforeEach(() => {
    before = handles()
  })
  afterEach(async () => {
    const extra = () =>
      Object.entries(handles()).filter(([name, count]) => count > (before[name] ?? 0))
    await waitFor(() => extra().length === 0, {
      deadlineMs: options.deadlineMs ?? 3000,
      what: 'no open handle left by the test',
    }).catch((error: unknown) => {
      throw new Error(`left open: ${JSON.stringify(Object.fromEntries(extra()))}`, { cause: error })
    })
  })
}

export type Query = (sql: string) => Promise<Record<string, unknown>[]>

/** What a server may keep of us: slots, prepared transactions, open transactions of our database. */
const LEFTOVERS = `
  SELECT 'slot ' || slot_name AS what FROM pg_replication_slots WHERE database = current_database()
  UNION ALL SELECT 'prepared transaction ' || gid FROM pg_prepared_xacts WHERE database = current_database()
  UNION ALL SELECT 'open transaction of process ' || pid FROM pg_stat_activity
    WHERE datname = current_database() AND pid <> pg_backend_pid() AND state LIKE 'idle in transaction%'
  UNION ALL SELECT 'subscription ' || subname FROM pg_subscription
    JOIN pg_database d ON d.oid = subdbid WHERE d.datname = current_database()`

/** Waits until the server keeps nothing of us; fails with what it keeps. */
export async function expectNothingLeft(query: Query, deadlineMs = 5000): Promise<void> {
  let left: unknown[] = []
  await waitFor(
    async () => {
      left = (await query(LEFTOVERS)).map((row) => row['what'])
      return left.length === 0
    },
    { deadlineMs, what: 'nothing left in PostgreSQL' },
  ).catch((error: unknown) => {
    throw new Error(`left in PostgreSQL: ${left.join(', ')}`, { cause: error })
  })
}
